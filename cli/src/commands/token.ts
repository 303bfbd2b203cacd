/** `./svc token`: prints an access token signed with this copy's own key, to try an API that demands one. */
import { defineCommand } from "../command.ts";
import { accessToken } from "../credentials/access-token.ts";
import { adviceFor } from "../credentials/advice.ts";
import { keyPairOf, privateKeyPath } from "../credentials/key-pair.ts";
import { defaultTenant, ownerRights, publicKeysFolder } from "../credentials/place.ts";
import { asBearer, keysReloadMs, tryCredential } from "../credentials/trial.ts";
import { INSTANCE_OPTIONS, resolveInstance } from "../instance.ts";
import { wholeNumber } from "../options.ts";
import { Problem, USAGE_EXIT_CODE } from "../problem.ts";
import { settingsPath } from "../settings/sources.ts";
import { settingOf } from "../settings.ts";
import { makeFolders } from "../supervisor/ground.ts";
import { readState } from "../supervisor/state.ts";

export const token = defineCommand({
  usage: "token --user U [--tenant T] [--ttl 300]",
  summary: "Prints an access token that this copy's own key signed.",
  details: `
The token alone goes to standard output:
  curl -H "Authorization: Bearer $(./svc token --user u1)" http://127.0.0.1:3112/v1/files/aaaaaaaaaaaaaaaaaaaaa
An API accepts it when SVC_JWT_PUBLIC_KEYS_DIR names the folder jwt-keys of the data folder.`,
  options: {
    user: { value: "U", doc: "User whom the token names." },
    tenant: { value: "T", doc: "Tenant of the user (default: SVC_JWT_SINGLE_TENANT_ID, else main)." },
    ttl: { value: "SECONDS", doc: "Life of the token (default and most: SVC_JWT_MAX_TTL_SECONDS, 300)." },
    ...INSTANCE_OPTIONS,
  },
  run: async ({ values }) => {
    const { user, tenant = defaultTenant(process.env) } = values;
    if (!user) throw new Problem("whose token? Give --user U", "See: ./svc token --help", USAGE_EXIT_CODE);
    const longest = settingOf("SVC_JWT_MAX_TTL_SECONDS", process.env);
    const ttlSeconds = values.ttl === undefined ? longest : wholeNumber("ttl", values.ttl, 1, longest);
    const instance = resolveInstance(values, process.env);
    const asRoot = await ownerRights(instance, privateKeyPath(instance, "token"));
    if (asRoot !== undefined) return asRoot;
    makeFolders(instance);
    const pair = await keyPairOf(instance, "token");
    const minted = accessToken({ ...pair, tenant, user, ttlSeconds }, process.env);
    console.log(minted);
    const url = readState(instance.runDir)?.url;
    const reloadMs = pair.isNew ? keysReloadMs(process.env) : 0;
    const verdict =
      url === undefined ? undefined : await tryCredential(url, () => asBearer(minted), reloadMs);
    const advice = adviceFor({
      settingsFile: settingsPath(instance.dataDir, process.env),
      url,
      verdict,
      variable: "SVC_JWT_PUBLIC_KEYS_DIR",
      value: publicKeysFolder(instance),
      configured: process.env.SVC_JWT_PUBLIC_KEYS_DIR,
      publicKey: pair.publicPath,
      reloadMs: keysReloadMs(process.env),
    });
    console.error(`User ${user} of tenant ${tenant}, for ${ttlSeconds} s. ${advice}`);
    return 0;
  },
});
