/** The list for GET /v1/languages: every language of the API, with what the runners reported about the installed ones. Pure. */
import { LANGUAGES, type LanguageInfo, type RuntimeInfo } from "@svc/contracts";

export function languagesOf(runtimes: readonly RuntimeInfo[]): LanguageInfo[] {
  return LANGUAGES.flatMap<LanguageInfo>(({ lang, aliases, runner, entry }) => {
    const shared = {
      name: runner,
      aliases: [lang, ...aliases].filter((alias) => alias !== runner),
      file_extension: entry.slice(entry.lastIndexOf(".") + 1),
      network: false as const,
    };
    const installed = runtimes.filter(({ language }) => language === runner);
    if (installed.length === 0) {
      return [{ ...shared, version: null, status: "absent" as const, packages: [], commands: [] }];
    }
    return installed.map(({ version, packages = [], commands = [], limits }) => ({
      ...shared,
      version,
      status: "ready" as const,
      packages,
      commands,
      ...(limits === undefined ? {} : { limits }),
    }));
  });
}
