/**
 * From an execute request to a program: what is staged where, and what is executed with which environment. Pure.
 * Names are checked by the one parser of names; nothing here touches a file.
 */
import {
  type ContentFile,
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

export interface Program {
  argv: string[];
  env: string[];
  stdin: Buffer | undefined;
  /** Files whose content came with the request; the first one is the entry. */
  contents: { path: string; bytes: Buffer }[];
  /** Files that are fetched. */
  references: ReferencedFile[];
  /** References that stand for directories. */
  directories: ReferencedFile[];
}

const MAX_ENV_BYTES = 1_000_000;
const ENV_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;
/** Variables that change how the loader or an interpreter starts, instead of what the program reads. */
const STEERING =
  /^(LD_|GLIBC_|MALLOC_|PYTHON|NODE_|BASH_|PERL5|PERLLIB|RUBY|JAVA_TOOL|_JAVA|JDK_|R_|PHP_INI|PHPRC|GO(ROOT|FLAGS|TOOLCHAIN)|RUST)|^(ENV|IFS|PS4|SHELLOPTS|GCONV_PATH|LOCPATH|NLSPATH|HOSTALIASES|TMPDIR|HOME|PATH|BASHOPTS|OPENSSL_CONF|MPLCONFIGDIR)$/;

const BASE_ENV = {
  PATH: "/usr/local/bin:/usr/bin:/bin",
  HOME: "/mnt/data",
  USER: "sandbox",
  LOGNAME: "sandbox",
  LANG: "C.UTF-8",
  TMPDIR: "/tmp",
};

export function programOf(request: ExecuteRequest, runtime: Runtime, names: NameLimits): Program {
  checkNames(request, names);
  const contents = request.files.filter(hasContent);
  const fetched = request.files.filter((file): file is ReferencedFile => !hasContent(file));
  const [entryFile, ...others] = contents;
  if (entryFile === undefined) {
    throw invalidRequest([{ path: "files", problem: "one item must have content: the entry file" }]);
  }
  const entry = freeEntryName(entryFile.name, [...others, ...fetched]);
  const taken = [...others, ...fetched].map(({ name }) => name);
  const conflict = findPathConflict(taken);
  if (conflict !== undefined) {
    const at = (index: number) =>
      `files[${request.files.findIndex((file) => file.name === taken[index])}].name`;
    throw new ServiceError(
      "invalid_file_reference",
      `Two files of the request conflict: one ${conflict.problem}.`,
      {
        details: [
          { path: at(conflict.first), problem: conflict.problem },
          { path: at(conflict.second), problem: conflict.problem },
        ],
      },
    );
  }
  return {
    argv: [
      ...runtime.command.map((part) => part.replaceAll("{entry}", () => entry)),
      ...(request.args ?? []),
    ],
    env: environment(request, runtime),
    stdin: request.stdin == null ? undefined : Buffer.from(request.stdin, "utf8"),
    contents: [entryFile, ...others].map((file, index) => ({
      path: index === 0 ? entry : file.name,
      bytes: decode(file),
    })),
    references: fetched.filter(({ name }) => !isDirkeep(name)),
    directories: fetched.filter(({ name }) => isDirkeep(name) && dirkeepDirectory(name) !== ""),
  };
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
  const taken = new Set<string>();
  for (const { name } of others) {
    for (let slash = name.indexOf("/"); slash !== -1; slash = name.indexOf("/", slash + 1)) {
      taken.add(name.slice(0, slash));
    }
    taken.add(name);
  }
  if (!taken.has(wanted)) return wanted;
  const dot = wanted.lastIndexOf(".");
  const [stem, extension] = dot > 0 ? [wanted.slice(0, dot), wanted.slice(dot)] : [wanted, ""];
  for (let number = 1; ; number++) {
    const name = `${stem}_${number}${extension}`;
    if (!taken.has(name)) return name;
  }
}

function decode(file: ContentFile): Buffer {
  return Buffer.from(file.content, file.encoding ?? "utf8");
}

function environment(request: ExecuteRequest, runtime: Runtime): string[] {
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
  const variables = new Map([...harmless, ...Object.entries(BASE_ENV), ...Object.entries(runtime.env)]);
  return [...variables].map(([name, value]) => `${name}=${value}`);
}
