// The least time that operators can take on a device, and what bounds it. The same rule as analysis/roofline.py.

export interface Device {
  name: string;
  title: string;
  peaks: Record<string, number>; // FLOP/s by dtype
  other: number; // FLOP/s of what is no product
  bandwidth: number; // bytes/s
  memory: number; // bytes
  source: string;
  reported?: string; // a pattern of what profilers call it; empty: none is known
}

export function peakOf(device: Device, dtype: string): number {
  return device.peaks[dtype.split('_')[0]!] ?? device.peaks['float32']!;
}

export interface Work {
  macs: number;
  other: number;
  bytes: number;
  dtype: string;
}

export interface Place {
  intensity: number; // FLOPs for each byte
  speed: number; // FLOP/s
  seconds: number;
  byMemory: boolean;
}

/** Where an operator is at best. */
export function standing({ macs, other, bytes, dtype }: Work, device: Device): Place {
  const compute = (2 * macs) / peakOf(device, dtype) + other / device.other;
  const memory = bytes / device.bandwidth;
  const seconds = Math.max(compute, memory);
  const flops = 2 * macs + other;
  return { intensity: flops / bytes, speed: flops / seconds, seconds, byMemory: memory >= compute };
}
