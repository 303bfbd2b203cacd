/** `./svc key add|list|revoke`: manages API keys in the file that SVC_API_KEYS_FILE names. */

import { type ApiKeyRecord, apiKeyState } from "@svc/contracts";
import { type Command, defineCommand } from "../command.ts";
import { adviceFor } from "../credentials/advice.ts";
import { changeApiKeys, readApiKeys } from "../credentials/api-keys-file.ts";
import { newApiKey } from "../credentials/new-api-key.ts";
import { apiKeysPath, defaultTenant, ownerRights } from "../credentials/place.ts";
import { tableOf } from "../credentials/table.ts";
import { asApiKey, RELOAD_MS, tryCredential } from "../credentials/trial.ts";
import { INSTANCE_OPTIONS, type Instance, resolveInstance } from "../instance.ts";
import { strict } from "../options.ts";
import { Problem, USAGE_EXIT_CODE } from "../problem.ts";
import { settingsPath } from "../settings/sources.ts";
import { type Environment, settingOf } from "../settings.ts";
import { makeFolders } from "../supervisor/ground.ts";
import { readState } from "../supervisor/state.ts";
import { areContainersMeant, asTyped, svcLine } from "../svc-line.ts";
import { printJson } from "../terminal.ts";

const add = defineCommand({
  usage: "add NAME [--tenant T] [--user U] [--plan P] [--expires 90d]",
  positionals: "[NAME]",
  summary: "Makes an API key and prints it once.",
  details: `
The key alone goes to standard output: KEY=$(./svc key add laptop)
It is sent as "Authorization: Bearer KEY" or "X-API-Key: KEY" (docs/authentication.md).`,
  options: {
    tenant: { value: "T", doc: "Tenant of the key (default: SVC_JWT_SINGLE_TENANT_ID, else main)." },
    user: { value: "U", doc: "User of the key, whose files it reaches (default: NAME)." },
    plan: { value: "P", doc: "Plan of the key, for SVC_PLAN_LIMITS." },
    expires: { value: "TIME", doc: "The key ends after this time, such as 90d, 12h or 2w (default: never)." },
    ...INSTANCE_OPTIONS,
  },
  run: async ({ values, positionals: [name] }) => {
    if (name === undefined) throw missing("a name for the key", "add");
    const instance = resolveInstance(values, process.env);
    const path = apiKeysPath(instance, process.env);
    const asRoot = await ownerRights(instance, path);
    if (asRoot !== undefined) return asRoot;
    const { tenant = defaultTenant(process.env), user = name, plan, expires } = values;
    const { key, record } = newApiKey({ name, tenant, user, plan, expires }, new Date());
    makeFolders(instance);
    await changeApiKeys(path, (records) => [...records, record]);
    console.error(
      `API key ${record.id} (${name}) for user ${user} of tenant ${tenant}. It is not shown again:`,
    );
    console.log(key);
    console.error(`Send it as "Authorization: Bearer KEY" or as "X-API-Key: KEY".`);
    if (plan !== undefined && !Object.hasOwn(settingOf("SVC_PLAN_LIMITS", process.env), plan)) {
      console.error(`SVC_PLAN_LIMITS has no plan ${plan}: the limits of default hold for this key.`);
    }
    console.error(await sayUse(instance, process.env, path, key));
    return 0;
  },
});

async function sayUse(instance: Instance, env: Environment, path: string, key: string): Promise<string> {
  // The API runs in another container, which is not reachable from this one.
  if (areContainersMeant()) return `A running API accepts it within ${RELOAD_MS / 1000} seconds.`;
  const url = readState(instance.runDir)?.url;
  const verdict = url === undefined ? undefined : await tryCredential(url, () => asApiKey(key), RELOAD_MS);
  const configured = env.SVC_API_KEYS_FILE;
  return adviceFor({
    settingsFile: settingsPath(instance.dataDir, env),
    url,
    verdict,
    variable: "SVC_API_KEYS_FILE",
    value: path,
    configured,
    reloadMs: RELOAD_MS,
  });
}

const list = defineCommand({
  usage: "list [--json]",
  summary: "Lists the API keys. The keys themselves are stored nowhere.",
  options: { json: { doc: "Print them as JSON." }, ...INSTANCE_OPTIONS },
  run: async ({ values }) => {
    const instance = resolveInstance(values, process.env);
    const path = apiKeysPath(instance, process.env);
    const asRoot = await ownerRights(instance, path);
    if (asRoot !== undefined) return asRoot;
    const records = await readApiKeys(path);
    if (values.json) printJson({ file: path, keys: (records ?? []).map(shownKey) });
    else if (records === undefined) console.error(`There is no API key: ${path} does not exist.`);
    else console.log(tableOf(records, Date.now()));
    return 0;
  },
});

/** Leaves out the digest, which only the API needs. */
function shownKey({ sha256: _digest, ...record }: ApiKeyRecord) {
  return { ...record, state: apiKeyState(record, Date.now()) };
}

const revoke = defineCommand({
  usage: "revoke ID",
  positionals: "[ID]",
  summary: "Ends an API key for good. A running API refuses it within two seconds.",
  options: INSTANCE_OPTIONS,
  run: async ({ values, positionals: [id] }) => {
    if (id === undefined) throw missing("the id of the key", "revoke");
    const instance = resolveInstance(values, process.env);
    const path = apiKeysPath(instance, process.env);
    const asRoot = await ownerRights(instance, path);
    if (asRoot !== undefined) return asRoot;
    let wasRevoked: string | undefined;
    await changeApiKeys(path, (records) => {
      const found = records.find((record) => record.id === id);
      if (found === undefined)
        throw new Problem(`${path} has no API key ${id}`, `See: ${svcLine("key list")}`);
      wasRevoked = found.revoked_at;
      const revoked_at = found.revoked_at ?? new Date().toISOString();
      return records.map((record) => (record === found ? { ...record, revoked_at } : record));
    });
    console.error(wasRevoked === undefined ? `Revoked: ${id}` : `${id} was revoked at ${wasRevoked}.`);
    return 0;
  },
});

function missing(what: string, action: string): Problem {
  return new Problem(`${what} is missing`, asTyped(`See: ./svc key ${action} --help`), USAGE_EXIT_CODE);
}

export const key: Command = {
  addTo: (program, rest) => {
    const parser = strict(program.command("key")).description("Makes, lists and revokes API keys.");
    parser.helpCommand(false).helpOption("-h, --help", "Show this help.");
    for (const action of [add, list, revoke]) action.addTo(parser, rest);
    parser.action(() => {
      throw new Problem("add, list or revoke?", asTyped("See: ./svc key --help"), USAGE_EXIT_CODE);
    });
  },
};
