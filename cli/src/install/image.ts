/**
 * The root image of the jails. The choice of additional languages and packages comes from the command line or the settings,
 * and is stored in the data folder. The symbolic link `image` there points to the image. Only `./svc up` and `./svc install`
 * of this copy move it. Images of several choices lie side by side (runtimes/image/lib/images).
 */
import { existsSync, readdirSync, readFileSync, realpathSync } from "node:fs";
import { isAbsolute, join, resolve } from "node:path";
import { findLanguage, LANGUAGES } from "@svc/contracts/languages";
import { NODE } from "../components.ts";
import { type Instance, ROOT } from "../instance.ts";
import type { Options } from "../options.ts";
import { Problem, USAGE_EXIT_CODE } from "../problem.ts";
import { type Environment, settingOf } from "../settings.ts";
import { suggestion } from "../suggestion.ts";
import { svcLine } from "../svc-line.ts";
import { replaceFile } from "../system/replace-file.ts";
import { mustRun } from "../system/run.ts";
import type { Note } from "../terminal.ts";

const ESBUILD = join(ROOT, `node_modules/@esbuild/${process.platform}-${process.arch}/bin/esbuild`);
const GROUPS = join(ROOT, "runtimes/groups");

export interface Choice {
  /** Names of runtime folders, or `all`. */
  languages: readonly string[];
  /** Names of package groups, and absolute paths of folders of the same form. */
  packages: readonly string[];
  /** The Debian mirror to build from; absent: the mirrors of the machine's apt sources. */
  mirror?: string | undefined;
}

/** The choice with nothing beyond what every image has. */
export const BASE: Choice = { languages: [], packages: [] };

/** Options of commands that build the image. */
export const IMAGE_OPTIONS = {
  languages: {
    value: "LIST",
    words: ["all", ...LANGUAGES.map(({ lang }) => lang)],
    doc: "Installs more languages: all, or a list such as go,java (SVC_LANGUAGES; default: as before).",
  },
  packages: {
    value: "LIST",
    doc: "Installs more packages: groups such as data,documents,media, folders of your own, all or none (SVC_PACKAGES; default: as before).",
  },
  mirror: {
    value: "URL",
    doc: "Debian mirror that the image is built from, or none for those of this machine's apt sources (default: as before).",
  },
} as const satisfies Options;

export type ChoiceOptions = Partial<Record<keyof typeof IMAGE_OPTIONS, string | undefined>>;

/** For languages and packages, the option overrides the setting, and the setting overrides the previous choice. */
export function chooseImage(options: ChoiceOptions, settings: Environment, before: Choice = BASE): Choice {
  const languages = options.languages ?? (settings.SVC_LANGUAGES || undefined);
  const packages = options.packages === undefined ? undefined : packageNames(options.packages, resolve);
  const set = settings.SVC_PACKAGES ? packageNames(settings.SVC_PACKAGES) : undefined;
  const mirror = options.mirror === undefined ? before.mirror : mirrorOf(options.mirror);
  return {
    languages: languages === undefined ? before.languages : runtimeNames(languages),
    packages: packages ?? set ?? before.packages,
    ...(mirror === undefined ? {} : { mirror }),
  };
}

const MIRROR_SCHEMES = ["http:", "https:", "file:"];

/** `text`: an address as a line of apt sources has it, or `none`. */
function mirrorOf(text: string): string | undefined {
  if (text === "none") return undefined;
  const url = URL.parse(text);
  const isPlain = url !== null && !/[\s[\]#]/.test(text) && url.username === "" && url.password === "";
  if (isPlain && MIRROR_SCHEMES.includes(url.protocol)) return text;
  throw new Problem(
    `${JSON.stringify(text)} is not the address of a Debian mirror`,
    "It is an http, https or file URL without credentials, such as http://mirror.example/debian, or none.",
    USAGE_EXIT_CODE,
  );
}

export function isSame(one: Choice, other: Choice): boolean {
  const text = ({ languages, packages, mirror }: Choice) => JSON.stringify([languages, packages, mirror]);
  return text(one) === text(other);
}

const words = (list: string) =>
  list
    .split(",")
    .map((word) => word.trim())
    .filter((word) => word !== "");

const sorted = (names: readonly string[]) => [...new Set(names)].sort();

/** Turns a comma list of language names, or `all`, into names of runtime folders. */
export function runtimeNames(list: string): string[] {
  const names = words(list).map((name) => {
    if (name.toLowerCase() === "all") return "all";
    const language = findLanguage(name);
    if (language !== undefined) return language.runner;
    const known = LANGUAGES.map(({ lang }) => lang).join(", ");
    throw new Problem(`there is no language ${name}`, `Known: all, ${known}`, USAGE_EXIT_CODE);
  });
  return names.includes("all") ? ["all"] : sorted(names);
}

/** Reads a comma list of group names and folders, `all` for every group, or `none`. `toPath` resolves a relative path, or refuses it. */
export function packageNames(list: string, toPath: (path: string) => string = absolute): string[] {
  const groups = existsSync(GROUPS) ? readdirSync(GROUPS).sort() : [];
  const known = ["all", "none", ...groups];
  const names = words(list).flatMap((name) => {
    if (name.includes("/")) return folderOf(toPath(name));
    if (name === "all") return groups;
    if (name === "none") return [];
    if (groups.includes(name)) return name;
    const near = suggestion(name, known);
    throw new Problem(
      `there is no package group ${name}${near === undefined ? "" : `; did you mean ${near}?`}`,
      `Known: ${known.join(", ")}; a folder of your own is named by its path (docs/packages.md)`,
      USAGE_EXIT_CODE,
    );
  });
  return sorted(names);
}

function absolute(path: string): string {
  if (isAbsolute(path)) return path;
  throw new Problem(`SVC_PACKAGES names ${path}`, "Folders in settings are absolute paths.", USAGE_EXIT_CODE);
}

function folderOf(path: string): string {
  const parts = ["packages", "npm", "wheels"];
  if (parts.some((part) => existsSync(join(path, part)))) return realpathSync(path);
  throw new Problem(
    `${path} is not a folder of packages: it has none of ${parts.join(", ")}`,
    "docs/packages.md says what lies in it.",
    USAGE_EXIT_CODE,
  );
}

const choiceFile = (dataDir: string) => join(dataDir, "image.json");

/** What was chosen for the copy of a data folder; undefined before its first start. */
export function readChoice(dataDir: string): Choice | undefined {
  const file = choiceFile(dataDir);
  if (!existsSync(file)) return undefined;
  const text = readFileSync(file, "utf8");
  try {
    const { languages, packages, mirror } = JSON.parse(text) as Choice;
    if (isNames(languages) && isNames(packages) && (mirror === undefined || typeof mirror === "string"))
      return { languages, packages, ...(mirror === undefined ? {} : { mirror }) };
  } catch {
    // The Problem below reports it.
  }
  throw new Problem(
    `${file} does not say which languages and packages were chosen`,
    `Remove it, and name them again: ${svcLine("up --languages LIST --packages LIST")}`,
  );
}

const isNames = (value: unknown) => Array.isArray(value) && value.every((name) => typeof name === "string");

export function rememberChoice(dataDir: string, { languages, packages, mirror }: Choice): void {
  const choice = JSON.stringify({ languages, packages, mirror });
  replaceFile(choiceFile(dataDir), `${choice}\n`, { mode: 0o644 });
}

export interface WantedImage {
  choice: Choice;
  /**
   * The link that will point to the image. The default is `current` in the folder of images, for tests and builds by hand.
   */
  link?: string;
}

/** Makes the link point to an image of the choice. Builds one when there is none. */
export async function buildImage(
  { packagesDir }: Pick<Instance, "packagesDir">,
  { choice, link }: WantedImage,
  note: Note,
): Promise<void> {
  const { languages, packages, mirror } = choice;
  const command = [
    join(ROOT, "runtimes/image/build"),
    ...["--out", packagesDir, "--node", NODE, "--esbuild", ESBUILD, "--progress"],
    ...(link === undefined ? [] : ["--link", link]),
    ...(languages.length === 0 ? [] : ["--languages", languages.join(",")]),
    ...(packages.length === 0 ? [] : ["--packages", packages.join(",")]),
    ...(mirror === undefined ? [] : ["--mirror", mirror]),
    ...(settingOf("SVC_IMAGE_STRICT", process.env) ? ["--strict"] : []),
  ];
  await mustRun(command, "building the root image", { onLine: note });
}

/** What an image has. */
export interface ImageContent {
  /** The folder of the image, without symbolic links. */
  folder: string;
  languages: string[];
  packages: string[];
}

/** `image`: a folder or a link to one. Returns undefined when there is no image. */
export function contentOf(image: string): ImageContent | undefined {
  const manifest = join(image, "runtimes.json");
  if (!existsSync(manifest)) return undefined;
  const { runtimes, packages = [] } = JSON.parse(readFileSync(manifest, "utf8")) as {
    runtimes: { language: string }[];
    packages?: string[];
  };
  return { folder: realpathSync(image), languages: runtimes.map(({ language }) => language), packages };
}

/** `bash, javascript, node, python, typescript; packages: data` */
export function imageText({ languages, packages }: Omit<ImageContent, "folder">): string {
  return [languages.join(", "), ...(packages.length === 0 ? [] : [`packages: ${packages.join(", ")}`])].join(
    "; ",
  );
}
