/** Reads the body of a response up to a bound. A longer body is cancelled and refused. */
import { ServiceRefusal } from "./service.ts";

/** What a body holds: a file, or an answer of the service such as a list or an error. */
export type Held = "file" | "answer";

export async function readBounded(
  { body }: Response,
  maxBytes: number,
  held: Held,
): Promise<Uint8Array<ArrayBuffer>> {
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  // Leaving the loop cancels the body.
  for await (const piece of (body ?? []) as AsyncIterable<Uint8Array>) {
    bytes += piece.length;
    if (bytes > maxBytes) throw tooLarge(maxBytes, held);
    pieces.push(piece);
  }
  return Buffer.concat(pieces, bytes);
}

function tooLarge(maxBytes: number, held: Held): ServiceRefusal {
  const more = `more than ${maxBytes.toLocaleString("en")} bytes`;
  return new ServiceRefusal(
    held === "file"
      ? `The file has ${more}; read a part of it with run_code.`
      : `The answer of the service has ${more}.`,
  );
}
