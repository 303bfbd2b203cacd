/** `list_languages`: what is installed. */
import type { LanguageInfo } from "@svc/contracts";
import { z } from "zod";
import { defineTool, structured } from "./tool.ts";

const language = z.object({
  name: z.string(),
  version: z.string(),
  aliases: z.array(z.string()),
  packages: z.array(z.string()).describe("Installed libraries, as name and version."),
});

export const listLanguages = defineTool({
  name: "list_languages",
  title: "List languages",
  description: "Lists the languages that are installed, with their versions and libraries.",
  input: z.object({}),
  output: z.object({ languages: z.array(language) }),
  isReadOnly: true,
  run: async (_input, { service, signal }) =>
    structured({ languages: (await service.languages(signal)).flatMap(shown) }),
});

function shown({ name, version, aliases, packages, status }: LanguageInfo): z.infer<typeof language>[] {
  if (status !== "ready" || version === null) return [];
  const libraries = packages.map((library) => `${library.name} ${library.version}`);
  return [{ name, version, aliases, packages: libraries }];
}
