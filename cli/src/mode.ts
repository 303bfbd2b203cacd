/**
 * Whether a copy started by ./svc demands credentials, which keys it trusts, and whether it keeps sessions: one answer for
 * all commands. Local mode is on unless a setting turns authentication on. The state of a running copy stores the answer,
 * because keys may have been set in another shell.
 */
import { apiKeyState } from "@svc/contracts";
import { isLoopback } from "@svc/service-kit/config/load";
import { authenticationSettings, providerOf, setting } from "@svc/service-kit/config/mode";
import { readApiKeysFile } from "@svc/service-kit/credentials/api-keys-file";
import {
  type KeySettings,
  keysOfDirectory,
  keysOfVariables,
  usableKeys,
} from "@svc/service-kit/credentials/key-sources";
import { type Environment, settingOf } from "./settings.ts";
import { usesMicrovms } from "./topology.ts";

export interface Mode {
  /** The value of LOCAL_MODE that the components get. */
  isLocal: boolean;
  isAuthenticated: boolean;
  /** Keys that authenticate callers: the number of keys in variables, and the paths of files with keys. */
  keys: {
    variables: number;
    directory: string;
    apiKeysFile: string;
    /** Allowed algorithms for keys in files. Absent while a supervisor of an earlier version runs. */
    algorithms?: readonly string[];
  };
  /** The address that the API listens on. */
  host: string;
  /** Runs continue sessions. Absent while a supervisor of an earlier version runs. */
  keepsSessions?: boolean;
  /** Programs run in microVMs. Absent while a supervisor of an earlier version runs. */
  usesMicrovms?: boolean;
}

/** Pure. A LOCAL_MODE that is neither true nor false counts as false, so no mistake opens the API. */
export function modeOf(settings: Environment): Mode {
  const localMode = setting(settings, "LOCAL_MODE");
  const isLocal = localMode === "" ? authenticationSettings(settings).length === 0 : localMode === "true";
  const keys = keySettingsOf(settings);
  return {
    isLocal,
    isAuthenticated: !isLocal && providerOf(settings) !== "none",
    keys: {
      variables: usableKeys(keys, keysOfVariables(keys, ignored)).size,
      directory: keys.SVC_JWT_PUBLIC_KEYS_DIR,
      apiKeysFile: keys.SVC_API_KEYS_FILE,
      algorithms: keys.SVC_JWT_ALLOWED_ALGS,
    },
    host: settingOf("SERVICE_HOST", settings),
    keepsSessions: settingOf("SVC_PERSIST_SESSIONS", settings),
    usesMicrovms: usesMicrovms(settings),
  };
}

export function keySettingsOf(settings: Environment): KeySettings {
  return {
    SVC_JWT_PUBLIC_KEY: setting(settings, "SVC_JWT_PUBLIC_KEY"),
    SVC_JWT_KID: setting(settings, "SVC_JWT_KID"),
    SVC_JWT_KEY_ID: setting(settings, "SVC_JWT_KEY_ID"),
    SVC_JWT_JWKS_JSON: setting(settings, "SVC_JWT_JWKS_JSON"),
    SVC_JWT_PUBLIC_KEYS_DIR: setting(settings, "SVC_JWT_PUBLIC_KEYS_DIR"),
    SVC_JWT_ALLOWED_ALGS: settingOf("SVC_JWT_ALLOWED_ALGS", settings),
    SVC_API_KEYS_FILE: setting(settings, "SVC_API_KEYS_FILE"),
  };
}

/** Unusable keys are ignored here, because settings/check.ts reports them. */
const ignored = () => undefined;

export interface KeyCounts {
  jwt: number;
  apiKeys: number;
}

/**
 * Counts the keys that the API accepts, as the files are now. Keys that this user cannot read, or that the API would refuse,
 * do not count.
 */
export async function countKeys({ keys }: Mode): Promise<KeyCounts> {
  const { variables, directory, apiKeysFile, algorithms } = keys;
  const fromFiles = await keysOfDirectory(directory, ignored).catch(() => new Map());
  const inForce = [...fromFiles.values()].filter(({ algorithm }) => algorithms?.includes(algorithm) ?? true);
  const { records } =
    apiKeysFile === "" ? { records: [] } : await readApiKeysFile(apiKeysFile).catch(() => ({ records: [] }));
  const active = records.filter((record) => apiKeyState(record, Date.now()) === "active");
  return { jwt: variables + inForce.length, apiKeys: active.length };
}

/** `no authentication, this machine only` or `authentication: 1 JWT key, 2 API keys; sessions are kept`. Pure. */
export function describeMode(mode: Mode, counts: KeyCounts): string {
  const { keepsSessions, usesMicrovms: isVirtual } = mode;
  return `${describeAuthentication(mode, counts)}${keepsSessions ? "; sessions are kept" : ""}${isVirtual ? "; in microVMs" : ""}`;
}

function describeAuthentication({ isAuthenticated, host }: Mode, { jwt, apiKeys }: KeyCounts): string {
  if (!isAuthenticated) {
    return `no authentication, ${isLoopback(host) ? "this machine only" : `open to everybody who reaches ${host}`}`;
  }
  const number = (count: number, what: string) =>
    count === 0 ? [] : [`${count} ${what}${count === 1 ? "" : "s"}`];
  const keys = [...number(jwt, "JWT key"), ...number(apiKeys, "API key")];
  return `authentication: ${keys.join(", ") || "no keys"}`;
}
