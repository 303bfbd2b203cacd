/** Reads the body of a response up to a bound. A longer body is cancelled and refused. */
import { ServiceRefusal } from "./service.ts";

export async function readBounded({ body }: Response, maxBytes: number): Promise<Uint8Array<ArrayBuffer>> {
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  // Leaving the loop cancels the body.
  for await (const piece of (body ?? []) as AsyncIterable<Uint8Array>) {
    bytes += piece.length;
    if (bytes > maxBytes) {
      throw new ServiceRefusal(
        `The file has more than ${maxBytes.toLocaleString("en")} bytes; read a part of it with run_code.`,
      );
    }
    pieces.push(piece);
  }
  return Buffer.concat(pieces, bytes);
}
