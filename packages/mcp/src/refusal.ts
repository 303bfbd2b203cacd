/** Turns a failed call of the service into a ServiceRefusal with a sentence that says why. Pure. */
import { ConnectionFailedError, type SvcError } from "svc-client";
import { ServiceRefusal } from "./service.ts";

const MAX_SHOWN_CHARS = 2000;
const NOT_OURS = "a proxy may have done so, or the address is another service's";

/** From an error of the client. `advice`: what to do when the service cannot be reached. */
export function refused(error: SvcError, advice: string): ServiceRefusal {
  const { message, code, retryAfter } = error;
  const said = message.slice(0, MAX_SHOWN_CHARS);
  const isAway = error instanceof ConnectionFailedError && error.status === 0;
  const more = isAway ? advice : retryAfter === undefined ? "" : `Try again in ${retryAfter} s.`;
  return new ServiceRefusal(`${said} ${more}`.trim(), code, { cause: error });
}

/** From an unsuccessful response: the sentence of its error body. */
export function refusalOf(status: number, body: Uint8Array): ServiceRefusal {
  const { error, message } = errorBodyOf(body);
  if (typeof error === "string" && typeof message === "string")
    return new ServiceRefusal(message.slice(0, MAX_SHOWN_CHARS), error);
  return new ServiceRefusal(`The service answered ${status}, and not in its own words: ${NOT_OURS}.`);
}

function errorBodyOf(body: Uint8Array): { error?: unknown; message?: unknown } {
  try {
    return Object(JSON.parse(new TextDecoder().decode(body)));
  } catch {
    return {};
  }
}
