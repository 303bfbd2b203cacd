/**
 * Which settings turn authentication on, and which of them contradict each other. Looks only at settings of the operator, not at
 * defaults. Without this check, LOCAL_MODE=true would silently ignore a configured key. Pure.
 */
import type { VariableName } from "./variables.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** Each of these variables provides keys that authenticate callers. */
export const KEY_SOURCES = [
  "SVC_JWT_PUBLIC_KEY",
  "SVC_JWT_JWKS_JSON",
  "SVC_JWT_PUBLIC_KEYS_DIR",
  "SVC_API_KEYS_FILE",
] as const satisfies readonly VariableName[];

export const setting = (env: Environment, name: VariableName) => (env[name] ?? "").trim();

/** The settings that ask for authentication, in a form that an operator recognises. Never shows values of keys. */
export function authenticationSettings(env: Environment): string[] {
  return [
    ...(setting(env, "LOCAL_MODE") === "false" ? ["LOCAL_MODE=false"] : []),
    ...(providerOf(env) === "librechat-jwt" ? ["SVC_AUTH_PROVIDER=librechat-jwt"] : []),
    ...KEY_SOURCES.filter((name) => setting(env, name) !== ""),
  ];
}

export function modeContradictions(env: Environment): string[] {
  const asked = authenticationSettings(env);
  const off = [
    ...(setting(env, "LOCAL_MODE") === "true" ? [["LOCAL_MODE=true", asked] as const] : []),
    ...(providerOf(env) === "none" ? [["SVC_AUTH_PROVIDER=none", asked.filter(isKeySource)] as const] : []),
  ];
  return off.flatMap(([without, others]) =>
    others.map((other) => `${without} turns authentication off and ${other} turns it on: unset one of them`),
  );
}

/** The value of SVC_AUTH_PROVIDER, in lower case because the variable's kind ignores case. */
export function providerOf(env: Environment): string {
  return setting(env, "SVC_AUTH_PROVIDER").toLowerCase();
}

function isKeySource(name: string): boolean {
  return (KEY_SOURCES as readonly string[]).includes(name);
}
