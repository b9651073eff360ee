// What events are called where there is little room.

const TEMPLATE = /<[^<>]*>/;

/** `void at::native::vectorized_elementwise_kernel<4, …>(…)`: vectorized_elementwise_kernel. */
export function shortName(name: string): string {
  if (name.startsWith('nn.Module: ')) return name.slice('nn.Module: '.length);
  if (name.includes('): ') || name.startsWith('## ') || name.startsWith('Memcpy') || name.startsWith('Memset')) return name;
  const inner = /^(?:void )?cutlass::(?:Kernel2?|device_kernel)<(\w+)/.exec(name); // all of them are called so
  if (inner) return inner[1]!;
  let text = name.replace(/^void /, '').replace(/\(anonymous namespace\)::/g, '');
  while (TEMPLATE.test(text) && text.length > 40) text = text.replace(TEMPLATE, '');
  text = text.replace(/\(.*\)(?: const)?$/, '');
  return text.replace(/^autograd::engine::evaluate_function: /, '').replace(/^(?:\w+::)+(?=\w)/, '') || name;
}

/** `llama.py(26): forward`: its file and line; null where it is no function of Python. */
export function placeOf(name: string): [file: string, line: number] | null {
  const found = /^(.+)\((\d{1,9})\): /.exec(name);
  return found ? [found[1]!, Number(found[2])] : null;
}
