/**
 * Turns an execute request into a program: what is staged where, and what is executed with which environment. Pure. The one parser of names checks
 * all names; nothing here touches a file.
 */
import {
  type ContentFile,
  directoriesOf,
  dirkeepDirectory,
  type ExecuteRequest,
  fileNameProblem,
  findPathConflict,
  hasContent,
  isDirkeep,
  type NameLimits,
  type ReferencedFile,
  ServiceError,
} from "@svc/contracts";
import { invalidRequest } from "@svc/service-kit";
import type { Runtime } from "./runtimes.ts";

/** A file to fetch, and its index in the request. */
export interface Reference extends ReferencedFile {
  at: number;
}

/** Memory that the runtime may count on, in bytes. */
export interface MemoryShares {
  run: number;
  compile: number;
}

/** The command that compiles the program, and the directory of the workspace that receives the result. */
export interface Compilation {
  argv: string[];
  env: string[];
  build: string;
}

export interface Program {
  argv: string[];
  env: string[];
  stdin: Buffer | undefined;
  /** Files whose content came with the request; the first of them is the entry. */
  contents: { path: string; bytes: Buffer }[];
  /** Absent when the sources are run as they are. */
  compile?: Compilation;
  /** The compiled files: executable, and not the caller's. */
  made: { path: string; bytes: Buffer }[];
  /** Files to fetch. */
  references: Reference[];
  /** References that stand for directories. */
  directories: Reference[];
  /** Directories that inline `.dirkeep` files ask for. */
  plainDirectories: string[];
  /** The persistent session that the program continues. */
  session?: ProgramSession;
  /** The caller has set the environment, and no warm process has that one. */
  hasOwnEnvironment: boolean;
}

/** Where the state of a run goes, and with which state the run begins. */
export interface ProgramSession {
  fileId: string;
  /** Absent: the run begins without a state. */
  snapshot?: Reference;
  /** The program keeps its variables from run to run. */
  hasVariables: boolean;
  /** There is a state that cannot be restored. The state that this run leaves is not saved. */
  restoreFailed?: boolean;
}

const MAX_ENV_BYTES = 1_000_000;
const ENV_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;
/** Variables that change how the loader or an interpreter starts, instead of what the program reads. */
const STEERING =
  /^(LD_|GLIBC_|MALLOC_|PYTHON|NODE_|BASH_|PERL5|PERLLIB|RUBY|JAVA_TOOL|_JAVA|JDK_|R_|PHP_INI|PHPRC|GO(ROOT|FLAGS|TOOLCHAIN)|RUST)|^(ENV|IFS|PS4|SHELLOPTS|GCONV_PATH|LOCPATH|NLSPATH|HOSTALIASES|TMPDIR|HOME|PATH|BASHOPTS|OPENSSL_CONF|MPLCONFIGDIR)$/;

export interface InputLimits {
  names: NameLimits;
  /** Not counting the entry file and the snapshot of a session. */
  maxFiles: number;
}

export function programOf(
  request: ExecuteRequest,
  runtime: Runtime,
  limits: InputLimits,
  memory: MemoryShares,
): Program {
  checkCount(request, limits);
  checkNames(request, limits.names);
  const entryAt = request.files.findIndex(hasContent);
  const entryFile = request.files[entryAt];
  if (entryFile === undefined) {
    throw invalidRequest([{ path: "files", problem: "one item must have content: the entry file" }]);
  }
  const entry = freeEntryName(
    entryFile.name,
    request.files.filter((_, at) => at !== entryAt),
  );
  const paths = request.files.map(({ name }, at) => (at === entryAt ? entry : name));
  checkConflicts(paths);
  const contents: Program["contents"] = [];
  const references: Reference[] = [];
  const plainDirectories: string[] = [];
  let snapshot: Reference | undefined;
  for (const [at, file] of request.files.entries()) {
    if (!hasContent(file)) {
      if (file.name === request.persist_session?.filename) snapshot = { ...file, at };
      else references.push({ ...file, at });
    } else if (at !== entryAt && isDirkeep(file.name)) plainDirectories.push(dirkeepDirectory(file.name));
    else contents.push({ path: paths[at] as string, bytes: decode(file, at) });
  }
  const build = freeEntryName(
    buildDirectory(request),
    paths.map((name) => ({ name })),
  );
  const run = fillerFor(entry, build, memory.run);
  const { compile } = runtime;
  return {
    argv: [...runtime.command.map(run), ...(request.args ?? [])],
    env: replaced(environment(request, runtime.env, run), request.env ?? []),
    ...(compile && {
      compile: compilation(request, compile, build, fillerFor(entry, build, memory.compile)),
    }),
    made: [],
    stdin: request.stdin == null ? undefined : Buffer.from(request.stdin, "utf8"),
    contents,
    references: references.filter(({ name }) => !isDirkeep(name)),
    directories: references.filter(({ name }) => isDirkeep(name)),
    plainDirectories: plainDirectories.filter((directory) => directory !== ""),
    ...sessionOf(request, runtime, snapshot),
    hasOwnEnvironment: (request.env ?? []).length > 0,
  };
}

function sessionOf(
  { persist_session }: ExecuteRequest,
  runtime: Runtime,
  snapshot: Reference | undefined,
): Pick<Program, "session"> {
  if (persist_session == null) return {};
  const { file_id: fileId, restore } = persist_session;
  const session = { fileId, hasVariables: runtime.session !== undefined };
  if (!restore) return { session };
  return { session: snapshot === undefined ? { ...session, restoreFailed: true } : { ...session, snapshot } };
}

function checkConflicts(paths: readonly string[]): void {
  const conflict = findPathConflict(paths);
  if (conflict === undefined) return;
  const { first, second, problem } = conflict;
  throw new ServiceError("invalid_file_reference", `Two files of the request conflict: one ${problem}.`, {
    details: [first, second].map((at) => ({ path: `files[${at}].name`, problem })),
  });
}

function checkCount({ files, persist_session }: ExecuteRequest, { maxFiles }: InputLimits): void {
  const own = persist_session?.restore ? 2 : 1;
  if (files.length > maxFiles + own)
    throw new ServiceError("too_many_files", `files: at most ${maxFiles} are allowed.`);
}

function checkNames(request: ExecuteRequest, names: NameLimits): void {
  const details = request.files.flatMap(({ name }, index) => {
    const problem = fileNameProblem(name, names);
    return problem === undefined ? [] : [{ path: `files[${index}].name`, problem }];
  });
  if (details.length > 0) throw new ServiceError("invalid_file_reference", undefined, { details });
}

/** The wanted name, or the first of `main_1.py`, `main_2.py`, … that no other file has or lies below. */
export function freeEntryName(wanted: string, others: readonly { name: string }[]): string {
  const taken = new Set(others.flatMap(({ name }) => [name, ...directoriesOf(name)]));
  if (!taken.has(wanted)) return wanted;
  const dot = wanted.lastIndexOf(".");
  const [stem, extension] =
    dot > wanted.lastIndexOf("/") + 1 ? [wanted.slice(0, dot), wanted.slice(dot)] : [wanted, ""];
  for (let number = 1; ; number++) {
    const name = `${stem}_${number}${extension}`;
    if (!taken.has(name)) return name;
  }
}

const HEX = /^[0-9a-f]*$/i;
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;

function decode({ content, encoding }: ContentFile, at: number): Buffer {
  const fits =
    encoding === "hex"
      ? content.length % 2 === 0 && HEX.test(content)
      : encoding !== "base64" || BASE64.test(content);
  if (!fits) throw invalidRequest([{ path: `files[${at}].content`, problem: `is not valid ${encoding}` }]);
  return Buffer.from(content, encoding ?? "utf8");
}

export const WORKSPACE = "/mnt/data";
/** A hidden directory: nothing in it is an output. The workspace of a session may hold any name, so the name there is unique to this run. */
const buildDirectory = ({ persist_session }: ExecuteRequest) =>
  persist_session == null ? ".build" : `.build-${persist_session.file_id}`;

type Filler = (text: string) => string;

/** Fills the placeholders of runtimes: `{entry}`, `{build}` (absolute), and `{memory:60}`, 60 % of the memory limit in bytes. */
function fillerFor(entry: string, build: string, memoryBytes: number): Filler {
  return (text) =>
    text.replace(/\{(?:(entry)|(build)|memory:(\d+))\}/g, (_, isEntry, isBuild, percent) => {
      if (isEntry) return entry;
      return isBuild ? `${WORKSPACE}/${build}` : String(Math.floor((memoryBytes * Number(percent)) / 100));
    });
}

function compilation(
  request: ExecuteRequest,
  { command, env }: NonNullable<Runtime["compile"]>,
  build: string,
  fill: Filler,
): Compilation {
  return { argv: command.map(fill), env: environment(request, env, fill), build };
}

/** Whether the executed file is what a compiler left, and no interpreter of the image. */
export function isMade({ argv: [command = ""], compile }: Program): boolean {
  return compile !== undefined && command.startsWith(`${WORKSPACE}/${compile.build}/`);
}

const nameOf = (variable: string) => variable.slice(0, variable.indexOf("="));

/** Variables, each name once: the later ones win. */
export function replaced(variables: readonly string[], later: readonly string[]): string[] {
  const names = new Set(later.map(nameOf));
  return [...variables.filter((variable) => !names.has(nameOf(variable))), ...later];
}

function environment(request: ExecuteRequest, own: Record<string, string>, fill: Filler): string[] {
  const given = Object.entries(request.env_vars ?? {});
  let bytes = 0;
  for (const [name, value] of given) {
    bytes += Buffer.byteLength(name) + Buffer.byteLength(value) + 2;
    if (!ENV_NAME.test(name) || value.includes("\0")) {
      throw invalidRequest([
        { path: "env_vars", problem: "names must match [A-Za-z_][A-Za-z0-9_]*, values have no NUL" },
      ]);
    }
  }
  if (bytes > MAX_ENV_BYTES) {
    throw invalidRequest([{ path: "env_vars", problem: `must have at most ${MAX_ENV_BYTES} bytes in all` }]);
  }
  const harmless = given.filter(([name]) => !STEERING.test(name));
  const variables = new Map([
    ...harmless,
    ...Object.entries(own).map(([name, value]) => [name, fill(value)] as const),
  ]);
  return [...variables].map(([name, value]) => `${name}=${value}`);
}
