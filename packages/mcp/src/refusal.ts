/** Why the service did not do what it was asked, as a sentence. Pure. */
import { ServiceRefusal } from "./service.ts";

const MAX_SHOWN_CHARS = 2000;

/** From an answer that is no success: the sentence of its error body, and when to try again. */
export function refusalOf(status: number, headers: Headers, body: Uint8Array): ServiceRefusal {
  const { error, message } = errorBodyOf(body);
  if (typeof error !== "string" || typeof message !== "string") {
    return new ServiceRefusal(
      `The service answered ${status}, and not in its own words: a proxy may have done so, or the address is another service's.`,
    );
  }
  const again = headers.get("retry-after");
  const sentence = message.slice(0, MAX_SHOWN_CHARS);
  return new ServiceRefusal(
    again === null || sentence.includes("gain in") ? sentence : `${sentence} Try again in ${again} s.`,
    error,
  );
}

/** From the `data` of an event `error`, which is an error body, too. */
export function refusalOfEvent(data: unknown): ServiceRefusal {
  const { error, message } = Object(data) as { error?: unknown; message?: unknown };
  if (typeof error !== "string" || typeof message !== "string")
    return new ServiceRefusal("The run failed, and the service did not say why.");
  return new ServiceRefusal(message.slice(0, MAX_SHOWN_CHARS), error);
}

export function unreachable(base: string, error: unknown, advice = ""): ServiceRefusal {
  const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
  const reason = (cause as NodeJS.ErrnoException).code ?? (cause as Error).message;
  return new ServiceRefusal(`No service answers at ${base} (${reason}). ${advice}`.trim(), undefined, {
    cause: error,
  });
}

function errorBodyOf(body: Uint8Array): { error?: unknown; message?: unknown } {
  try {
    return Object(JSON.parse(new TextDecoder().decode(body)));
  } catch {
    return {};
  }
}
