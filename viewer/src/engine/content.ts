// The bytes of a file, wherever they are. The engine gets them itself: a large file would stop the page for a while.

export interface Address {
  url: string;
  headers: Record<string, string>;
}

/** Bytes, their base64 (as a one-file page holds them), or where to ask for them. */
export type Content = Uint8Array | string | Address;

export async function bytesOf(content: Content): Promise<Uint8Array> {
  if (content instanceof Uint8Array) return content;
  if (typeof content === 'string') return fromBase64(content);
  const answer = await fetch(content.url, { headers: content.headers });
  if (!answer.ok) throw new Error(`the server answered ${answer.status} ${answer.statusText}`);
  return new Uint8Array(await answer.arrayBuffer());
}

function fromBase64(text: string): Uint8Array {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}
