/** Turns error frames and failures of the connection into JailErrors. The caller's own abort stays as it is. */
import { Fields, type Frame, ProtocolError } from "./frames.ts";
import { errorKind, JailError } from "./types.ts";

const MAX_TEXT = 500;

/** Throws the JailError that an error frame describes; returns every other frame. */
export function refuseError(received: Frame, started: boolean): Frame {
  if (received.tag !== "e") return received;
  const fields = new Fields(received.payload);
  const kind = errorKind(fields.u8());
  const errno = fields.u32();
  const text = fields.rest().toString("utf8").slice(0, MAX_TEXT);
  throw new JailError(kind, started, `${text} (errno ${errno})`, errno);
}

export function expectTag(received: Frame, tag: string, started: boolean): Frame {
  if (refuseError(received, started).tag !== tag) throw new ProtocolError(`unexpected frame ${received.tag}`);
  return received;
}

/** Errors without a `syscall`, such as the reason of an abort, stay as they are. All others become JailErrors. */
export function asJailError(error: unknown, started: boolean): unknown {
  if (error instanceof JailError) return new JailError(error.kind, started, error.message, error.errno);
  if (error instanceof ProtocolError) return new JailError("protocol", started, error.message);
  const { syscall, code } = (error ?? {}) as NodeJS.ErrnoException;
  if (syscall === undefined) return error;
  return new JailError("gone", started, `the connection to jaild failed: ${code}`);
}
