/**
 * Which settings turn authentication on, and which of them contradict each other. Looks at what an operator set, not at
 * defaults: LOCAL_MODE=true beside a key would otherwise leave that key unused without a word. Pure.
 */
import type { VariableName } from "./variables.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** Each names keys by which callers are recognised. */
export const KEY_SOURCES = [
  "SVC_JWT_PUBLIC_KEY",
  "SVC_JWT_JWKS_JSON",
  "SVC_JWT_PUBLIC_KEYS_DIR",
  "SVC_API_KEYS_FILE",
] as const satisfies readonly VariableName[];

export const setting = (env: Environment, name: VariableName) => (env[name] ?? "").trim();

/** The settings that ask for authentication, as an operator would recognise them. Values of keys are not shown. */
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

/** As the variable's own kind reads it. */
export function providerOf(env: Environment): string {
  return setting(env, "SVC_AUTH_PROVIDER").toLowerCase();
}

function isKeySource(name: string): boolean {
  return (KEY_SOURCES as readonly string[]).includes(name);
}
