// The zip file around a capture. Only what opscope writes is read: stored and deflated members.

interface Member {
  method: number;
  start: number; // of the local header
  packed: number;
  size: number;
}

const EOCD = 0x06054b50;
const CENTRAL = 0x02014b50;
const LOCAL = 0x04034b50;
// The Python side refuses the same: a small file that claims to be a huge one.
const MOST_TIMES = 200;
const ALWAYS_ALLOWED = 64 << 20;

export class Archive {
  private members = new Map<string, Member>();

  constructor(readonly bytes: Uint8Array) {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const end = findEnd(view);
    if (end < 0) throw new Error('not a whole zip file: it may have been cut off');
    const count = view.getUint16(end + 10, true);
    let at = view.getUint32(end + 16, true);
    let total = 0;
    const decoder = new TextDecoder();
    for (let i = 0; i < count; i++) {
      if (at + 46 > bytes.length || view.getUint32(at, true) !== CENTRAL) throw new Error('the zip file is damaged');
      const nameLength = view.getUint16(at + 28, true);
      const name = decoder.decode(bytes.subarray(at + 46, at + 46 + nameLength));
      const member = {
        method: view.getUint16(at + 10, true),
        packed: view.getUint32(at + 20, true),
        size: view.getUint32(at + 24, true),
        start: view.getUint32(at + 42, true),
      };
      total += member.size;
      this.members.set(name, member);
      at += 46 + nameLength + view.getUint16(at + 30, true) + view.getUint16(at + 32, true);
    }
    if (total > ALWAYS_ALLOWED + MOST_TIMES * bytes.length) throw new Error('its members claim too much memory: refused');
  }

  has(name: string): boolean {
    return this.members.has(name);
  }

  async read(name: string): Promise<Uint8Array> {
    const member = this.members.get(name);
    if (!member) throw new Error(`member ${name} is missing: the file is damaged`);
    const view = new DataView(this.bytes.buffer, this.bytes.byteOffset, this.bytes.byteLength);
    if (member.start + 30 > this.bytes.length || view.getUint32(member.start, true) !== LOCAL) {
      throw new Error(`member ${name} is damaged`);
    }
    const data = member.start + 30 + view.getUint16(member.start + 26, true) + view.getUint16(member.start + 28, true);
    const packed = this.bytes.subarray(data, data + member.packed);
    if (member.method === 0) return packed.slice();
    if (member.method !== 8) throw new Error(`member ${name} is compressed in a way opscope does not write`);
    const out = await inflate(packed, member.size);
    if (!out) throw new Error(`member ${name} is damaged`);
    return out;
  }
}

/** The bytes of a deflated member, or null if they are not what was announced. */
async function inflate(packed: Uint8Array, size: number): Promise<Uint8Array | null> {
  // Written straight into the stream: by way of a Blob and a Response every byte would cross process borders twice.
  const { writable, readable } = new DecompressionStream('deflate-raw');
  const writer = writable.getWriter();
  const written = Promise.all([writer.write(packed as BufferSource), writer.close()]).catch(() => undefined); // reading fails too
  const out = new Uint8Array(size);
  let at = 0;
  const reader = readable.getReader();
  try {
    for (let step = await reader.read(); !step.done; step = await reader.read()) {
      if (at + step.value.length > size) return null;
      out.set(step.value, at);
      at += step.value.length;
    }
    await written;
  } catch {
    return null;
  }
  return at === size ? out : null;
}

function findEnd(view: DataView): number {
  for (let at = view.byteLength - 22; at >= Math.max(0, view.byteLength - 22 - 65535); at--) {
    if (view.getUint32(at, true) === EOCD) return at;
  }
  return -1;
}
