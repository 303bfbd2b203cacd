/**
 * `./svc librechat`: prints the settings of both sides, and sends a request the way LibreChat does. Does not change any
 * settings itself.
 */
import { defineCommand } from "../command.ts";
import { accessToken, partiesOf } from "../credentials/access-token.ts";
import { adviceFor, type Situation } from "../credentials/advice.ts";
import { changeApiKeys } from "../credentials/api-keys-file.ts";
import { keyPairOf, privateKeyPath } from "../credentials/key-pair.ts";
import { sharedSettings, shownSettings, signedSettings } from "../credentials/librechat-settings.ts";
import { newApiKey } from "../credentials/new-api-key.ts";
import { apiKeysPath, defaultTenant, ownerRights, publicKeysFolder } from "../credentials/place.ts";
import {
  asApiKey,
  asBearer,
  ask,
  type Headers,
  keysReloadMs,
  RELOAD_MS,
  tryCredential,
} from "../credentials/trial.ts";
import { INSTANCE_OPTIONS, type Instance, resolveInstance } from "../instance.ts";
import { Problem, USAGE_EXIT_CODE } from "../problem.ts";
import { serviceAddress } from "../service-address.ts";
import { settingsPath } from "../settings/sources.ts";
import { type Environment, settingOf } from "../settings.ts";
import { makeFolders } from "../supervisor/ground.ts";
import { readState } from "../supervisor/state.ts";

const USER = "svc-librechat-check";

/** How LibreChat authenticates its users, and the settings for that. */
interface Connection extends Pick<Situation, "variable" | "value" | "configured" | "publicKey"> {
  settings: { libreChat: string[]; svc: string[] };
  /** Called for each request, because LibreChat makes new headers for each. */
  headers: () => Headers;
  reloadMs: number;
  /** Tells the operator how to repeat the request later. */
  again: string;
}

export const librechat = defineCommand({
  usage: "librechat [--base-url URL] [--tenant T] [--shared-key]",
  summary: "Prints the settings that connect LibreChat, and shows that a request with them is accepted.",
  details: `
Makes a key pair on first use: LibreChat signs a token for each of its users, and this service verifies it.
With --shared-key: one API key for all users, for a LibreChat that sends LIBRECHAT_CODE_API_KEY.
docs/librechat.md says more. Exit codes: 0 the request was accepted; 1 not yet, with what to do first.`,
  options: {
    "base-url": {
      value: "URL",
      doc: "Address at which LibreChat reaches the API (default: the copy on this machine).",
    },
    url: { value: "URL", doc: "Address at which this command tries the API (default: the running copy)." },
    tenant: { value: "T", doc: "Tenant of all users (default: SVC_JWT_SINGLE_TENANT_ID, else main)." },
    "shared-key": { doc: "One API key for all users instead of a token for each." },
    ...INSTANCE_OPTIONS,
  },
  run: async ({ values }) => {
    const instance = resolveInstance(values, process.env);
    const shared = values["shared-key"];
    const asRoot = await ownerRights(
      instance,
      shared ? apiKeysPath(instance, process.env) : privateKeyPath(instance, "librechat"),
    );
    if (asRoot !== undefined) return asRoot;
    makeFolders(instance);
    const url = values.url === undefined ? readState(instance.runDir)?.url : serviceAddress(values.url);
    const baseUrl = withV1(values["base-url"] ?? url ?? instance.url);
    const tenant = values.tenant ?? defaultTenant(process.env);
    const connection = await (shared ? sharedKey : signedTokens)(instance, process.env, baseUrl, tenant);
    console.log(shownSettings(connection.settings, settingsPath(instance.dataDir, process.env)));
    return await verify(instance, url, connection);
  },
});

/** LibreChat does not accept an address without a scheme, and the right scheme cannot be guessed. */
function withV1(url: string): string {
  if (/^https?:\/\//i.test(url)) return `${serviceAddress(url, "--base-url")}/v1`;
  throw new Problem(`--base-url is no address such as http://host:3112: ${url}`, undefined, USAGE_EXIT_CODE);
}

async function signedTokens(
  instance: Instance,
  env: Environment,
  baseUrl: string,
  tenant: string,
): Promise<Connection> {
  const { kid, privateKey, publicPath } = await keyPairOf(instance, "librechat");
  const publicKeys = publicKeysFolder(instance);
  const ttlSeconds = settingOf("SVC_JWT_MAX_TTL_SECONDS", env);
  return {
    settings: signedSettings({
      baseUrl,
      kid,
      privateKey,
      ...partiesOf(env),
      tenant,
      ttlSeconds,
      publicKeys,
    }),
    headers: () => asBearer(accessToken({ kid, privateKey, tenant, user: USER, ttlSeconds }, env)),
    variable: "SVC_JWT_PUBLIC_KEYS_DIR",
    value: publicKeys,
    configured: env.SVC_JWT_PUBLIC_KEYS_DIR,
    publicKey: publicPath,
    again: "Then run this command again: it sends a request as LibreChat does.",
    reloadMs: keysReloadMs(env),
  };
}

async function sharedKey(
  instance: Instance,
  env: Environment,
  baseUrl: string,
  tenant: string,
): Promise<Connection> {
  const { key, record } = newApiKey({ name: "librechat", tenant, user: "librechat" }, new Date());
  const file = apiKeysPath(instance, env);
  await changeApiKeys(file, (records) => [...records, record]);
  return {
    settings: sharedSettings({ baseUrl, key, file }),
    headers: () => asApiKey(key),
    variable: "SVC_API_KEYS_FILE",
    value: file,
    configured: env.SVC_API_KEYS_FILE,
    again: `Then try it, 404 means accepted: curl -s -o /dev/null -w '%{http_code}' -H 'X-API-Key: ${key}' ${baseUrl}/files/aaaaaaaaaaaaaaaaaaaaa`,
    reloadMs: RELOAD_MS,
  };
}

/** Runs a program as a user of LibreChat would. Returns the exit code. */
async function verify(instance: Instance, url: string | undefined, connection: Connection): Promise<number> {
  const verdict =
    url === undefined ? undefined : await tryCredential(url, connection.headers, connection.reloadMs);
  console.error(
    adviceFor({
      ...connection,
      settingsFile: settingsPath(instance.dataDir, process.env),
      url,
      verdict,
    }),
  );
  if (url === undefined || verdict !== "accepted") {
    console.error(connection.again);
    return 1;
  }
  const program = JSON.stringify({ lang: "bash", code: "echo the program ran" });
  const { status, body } = await ask(url, "POST", "/exec", connection.headers(), program).catch(
    ({ code, message }: NodeJS.ErrnoException) => ({ status: "no answer", body: code ?? message }),
  );
  if (status === 200 && body.includes("the program ran\\n")) {
    console.error("A program ran for a user of LibreChat.");
    return 0;
  }
  console.error(`A program did not run (${status}): ${body.slice(0, 300)}`);
  console.error("./svc status says whether it is ready.");
  return 1;
}
