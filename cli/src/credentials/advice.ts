/** What to do so that the running copy, or the next one, accepts a new credential. Pure. */

import { resolve } from "node:path";
import { svcLine } from "../svc-line.ts";
import { shown } from "../system/run.ts";
import type { Verdict } from "./trial.ts";

export interface Situation {
  /** The settings file that ./svc reads, or would read if it existed. */
  settingsFile: string;
  /** The address of the API that was asked. Undefined when no copy of this data folder runs. */
  url: string | undefined;
  verdict: Verdict | undefined;
  /** The variable that makes an API accept the credential, the value that it needs, and its present value. */
  variable: "SVC_API_KEYS_FILE" | "SVC_JWT_PUBLIC_KEYS_DIR";
  value: string;
  configured: string | undefined;
  /** File of the public key, where the credential is a token. */
  publicKey?: string;
  /** Time within which a running API has read a new key. */
  reloadMs: number;
}

export function adviceFor(situation: Situation): string {
  const { settingsFile, url, verdict, variable, value, configured, publicKey, reloadMs } = situation;
  if (url !== undefined && verdict === "accepted") return `The API at ${url} accepts it.`;
  const state = stateOf(url, verdict);
  const seconds = Math.ceil(reloadMs / 1000);
  if (!configured) {
    return `${state}\nFor the next start, set this in the environment or as a line of ${settingsFile}:\n  ${variable}=${value}`;
  }
  if (resolve(configured) !== resolve(value) && publicKey !== undefined) {
    const copy = shown(["cp", publicKey, configured]);
    return `${state}\n${variable} is ${configured}: give it this public key, which counts within ${seconds} s:\n  ${copy}`;
  }
  if (url === undefined) return `${state}\nStart it: ${svcLine("up -d")}`;
  const soon = publicKey === undefined ? "" : `A new public key counts within ${seconds} s. `;
  return `${state}\n${soon}If it was started with other settings, start it again: ${svcLine("down")}, then ${svcLine("up -d")}`;
}

function stateOf(url: string | undefined, verdict: Verdict | undefined): string {
  if (url === undefined) return "No copy of this data folder runs.";
  if (verdict === "open") return `The API at ${url} asks nobody for a credential.`;
  if (verdict === "unreachable") return `No API answers at ${url}.`;
  return `The API at ${url} does not accept it.`;
}
