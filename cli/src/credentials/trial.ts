/** Sends a credential to a running API, to tell a person whether the API accepts it. */
import { request } from "node:http";
import { request as secureRequest } from "node:https";
import { text } from "node:stream/consumers";
import { type Environment, settingOf } from "../settings.ts";
import { sleep } from "../system/process.ts";

/** `open`: the API demands no credentials. */
export type Verdict = "accepted" | "refused" | "open" | "unreachable";
export type Headers = Readonly<Record<string, string>>;

/** A running API has read a changed file of API keys within this time. */
export const RELOAD_MS = 3000;

/** A running API has read a new public key within this time. */
export function keysReloadMs(env: Environment): number {
  if (!env.SVC_JWT_PUBLIC_KEYS_DIR) return RELOAD_MS;
  return RELOAD_MS + settingOf("SVC_JWT_KEY_CACHE_TTL_SECONDS", env) * 1000;
}

/** Longer than a program runs under the default limits. */
const TIMEOUT_MS = 70_000;
/** The API judges a credential at once. */
const VERDICT_MS = 10_000;
const RETRY_MS = 250;
/** A file that nobody has, so the status depends only on the credential. */
const NO_FILE = "/files/aaaaaaaaaaaaaaaaaaaaa";

export const asBearer = (token: string): Headers => ({ authorization: `Bearer ${token}` });
export const asApiKey = (key: string): Headers => ({ "x-api-key": key });

/**
 * `base`: address of the API, with or without /v1. A refused credential is sent again until `patienceMs` is over.
 * `timeoutMs`: limit for each answer.
 */
export async function tryCredential(
  base: string,
  headers: () => Headers,
  patienceMs = 0,
  timeoutMs = VERDICT_MS,
): Promise<Verdict> {
  const end = performance.now() + patienceMs;
  const shown = (given: Headers) => ask(base, "GET", NO_FILE, given, "", timeoutMs);
  try {
    while ((await shown(headers())).status === 401) {
      if (performance.now() >= end) return "refused";
      await sleep(RETRY_MS);
    }
    return (await shown({})).status === 401 ? "accepted" : "open";
  } catch {
    return "unreachable";
  }
}

export interface Answer {
  status: number;
  body: string;
}

/** Rejects where no API answers. */
export function ask(
  base: string,
  method: string,
  path: string,
  headers: Headers,
  body = "",
  timeout = TIMEOUT_MS,
): Promise<Answer> {
  const url = new URL(`${base.replace(/\/+$/, "").replace(/\/v1$/, "")}/v1${path}`);
  const send = url.protocol === "https:" ? secureRequest : request;
  const type: Headers = body === "" ? {} : { "content-type": "application/json" };
  return new Promise((resolve, reject) => {
    const options = { method, headers: { ...headers, ...type }, agent: false, timeout };
    const call = send(url, options, (answer) => {
      text(answer).then((read) => resolve({ status: answer.statusCode ?? 0, body: read }), reject);
    });
    call.once("timeout", () => call.destroy(new Error("no answer in time")));
    call.once("error", reject);
    call.end(body);
  });
}
