/** Puts calls together into bodies of the gateway's `POST /tool-calls`. Pure. */
import { MAX_RECORDED_CALLS } from "@svc/contracts";

export interface BatchedCall {
  callId: string;
  /** Body of `POST /tool-call`: the text of one JSON value. */
  text: string;
  /** Of the text. */
  bytes: number;
}

/** Before the first call there is no comma. */
const AROUND_ALL = '{"calls":[]}'.length - ",".length;

/** Calls in their order, each batch as many as a body of at most `maxBytes` holds; and those that are too large for any. */
export function batchesOf<C extends BatchedCall>(
  calls: Iterable<C>,
  maxBytes: number,
): { batches: C[][]; tooLarge: C[] } {
  const batches: C[][] = [];
  const tooLarge: C[] = [];
  let left = 0;
  for (const call of calls) {
    const size = sizeOf(call);
    if (AROUND_ALL + size > maxBytes) {
      tooLarge.push(call);
      continue;
    }
    const batch = batches.at(-1);
    if (batch === undefined || size > left || batch.length === MAX_RECORDED_CALLS) {
      batches.push([call]);
      left = maxBytes - AROUND_ALL - size;
    } else {
      batch.push(call);
      left -= size;
    }
  }
  return { batches, tooLarge };
}

/** In a body, with the comma before it. */
const sizeOf = ({ callId, bytes }: BatchedCall) => entry(callId, "").length + bytes + 1;

export function bodyOf(calls: readonly BatchedCall[]): string {
  return `{"calls":[${calls.map(({ callId, text }) => entry(callId, text)).join(",")}]}`;
}

const entry = (callId: string, text: string) => `{"call_id":${JSON.stringify(callId)},"call":${text}}`;
