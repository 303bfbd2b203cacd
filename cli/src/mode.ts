/**
 * Whether a copy started by ./svc demands credentials, and by which keys: one answer for all commands. Local mode unless a
 * setting turns authentication on. A running copy's state keeps the answer, because keys may be set in another shell.
 */
import { readdirSync, readFileSync } from "node:fs";
import { parse } from "node:path";
import { isLoopback } from "@svc/service-kit/config/load";
import { authenticationSettings, providerOf, setting } from "@svc/service-kit/config/mode";
import { type Environment, settingOf } from "./settings.ts";

export interface Mode {
  /** LOCAL_MODE, as the components are told. */
  isLocal: boolean;
  isAuthenticated: boolean;
  /** Keys that recognise callers: their number where variables hold them, and where files do. */
  keys: { variables: number; directory: string; apiKeysFile: string };
  /** The address that the API listens on. */
  host: string;
}

/** Pure. What is neither true nor false counts as LOCAL_MODE=false: no mistake opens the API. */
export function modeOf(settings: Environment): Mode {
  const localMode = setting(settings, "LOCAL_MODE");
  const isLocal = localMode === "" ? authenticationSettings(settings).length === 0 : localMode === "true";
  return {
    isLocal,
    isAuthenticated: !isLocal && providerOf(settings) !== "none",
    keys: {
      variables: (setting(settings, "SVC_JWT_PUBLIC_KEY") === "" ? 0 : 1) + keysInSet(settings),
      directory: setting(settings, "SVC_JWT_PUBLIC_KEYS_DIR"),
      apiKeysFile: setting(settings, "SVC_API_KEYS_FILE"),
    },
    host: settingOf("SERVICE_HOST", settings),
  };
}

function keysInSet(settings: Environment): number {
  try {
    const { keys } = JSON.parse(setting(settings, "SVC_JWT_JWKS_JSON")) as { keys: unknown[] };
    return keys.length;
  } catch {
    return 0;
  }
}

export interface KeyCounts {
  jwt: number;
  apiKeys: number;
}

/** As the files are now. What cannot be read counts as none: the API names it. */
export function countKeys({ keys: { variables, directory, apiKeysFile } }: Mode): KeyCounts {
  return {
    jwt: variables + keyFilesIn(directory).length,
    apiKeys: usableKeys(textOf(apiKeysFile), new Date()),
  };
}

/** Names of the files that hold keys. */
export function keyFilesIn(directory: string): string[] {
  if (directory === "") return [];
  try {
    const files = readdirSync(directory, { withFileTypes: true });
    const keys = files.filter((file) => !file.name.startsWith(".") && !file.isDirectory());
    return [...new Map(keys.map(({ name }) => [parse(name).name, name])).values()];
  } catch {
    return [];
  }
}

/** API keys, one JSON object on each line, that are neither revoked nor expired. Pure. */
export function usableKeys(text: string, now: Date): number {
  return text.split("\n").filter((line) => {
    try {
      const { revoked_at, expires_at } = JSON.parse(line) as { revoked_at?: string; expires_at?: string };
      return revoked_at === undefined && (expires_at === undefined || new Date(expires_at) > now);
    } catch {
      return false;
    }
  }).length;
}

function textOf(file: string): string {
  try {
    return file === "" ? "" : readFileSync(file, "utf8");
  } catch {
    return "";
  }
}

/** `no authentication, this machine only` or `authentication: 1 JWT key, 2 API keys`. Pure. */
export function describeMode({ isAuthenticated, host }: Mode, { jwt, apiKeys }: KeyCounts): string {
  if (!isAuthenticated) {
    return `no authentication, ${isLoopback(host) ? "this machine only" : `open to everybody who reaches ${host}`}`;
  }
  const number = (count: number, what: string) =>
    count === 0 ? [] : [`${count} ${what}${count === 1 ? "" : "s"}`];
  const keys = [...number(jwt, "JWT key"), ...number(apiKeys, "API key")];
  return `authentication: ${keys.join(", ") || "no keys"}`;
}
