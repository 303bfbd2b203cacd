/** Parses the body of POST /v1/exec. Pure. */
import {
  type ExecBody,
  execBodySchema,
  findLanguage,
  installHint,
  type NameLimits,
  parseEnvironment,
  type RuntimeInfo,
  ServiceError,
} from "@svc/contracts";
import { invalidRequest, parseOrRefuse } from "@svc/service-kit";
import semver from "semver";
import { nearestLanguage } from "./nearest-language.ts";
import { type ParsedFiles, parseFiles } from "./refs.ts";

export interface ExecRules {
  defaultRunMs: number;
  maxRunMs: number;
  maxFiles: number;
  names: NameLimits;
  keepsSessions: boolean;
  /** Undefined: not known yet; the runner then decides. */
  runtimes: readonly RuntimeInfo[] | undefined;
}

export interface ParsedExec extends ParsedFiles {
  language: string;
  version: string;
  code: string;
  args: string[];
  stdin?: string;
  run_timeout: number;
  /** Absent when the request has none. */
  env?: string[];
}

export function parseExec(body: unknown, rules: ExecRules): ParsedExec {
  const request = parseOrRefuse(execBodySchema, body);
  if (request.workspace_instance_id != null) throw new ServiceError("stateful_workspace_unsupported");
  const { language, version } = chooseRuntime(request, rules.runtimes);
  return {
    language,
    version,
    run_timeout: Math.min(request.run_timeout ?? request.timeout ?? rules.defaultRunMs, rules.maxRunMs),
    ...parseEnv(request.env),
    ...programFields(request, rules),
  };
}

/** The program and its inputs; shared by executions and programs with tools. */
export function programFields(
  { code, args, stdin, files }: Pick<ExecBody, "code" | "args" | "stdin" | "files">,
  rules: ExecRules,
): Pick<ParsedExec, "code" | "args" | "stdin" | keyof ParsedFiles> {
  return {
    code,
    args: args ?? [],
    ...(stdin == null ? {} : { stdin }),
    ...parseFiles(files, rules),
  };
}

/** The environment variables of a program. The error names each reserved name and each wrong value. */
export function parseEnv(env: unknown): Pick<ParsedExec, "env"> {
  if (env === undefined || env === null) return {};
  if (typeof env !== "object" || Array.isArray(env)) {
    throw invalidRequest([{ path: "env", problem: "must be an object of strings" }]);
  }
  const { variables, problems } = parseEnvironment(env as Record<string, unknown>);
  if (problems.length > 0) throw invalidRequest(problems);
  return variables.length > 0 ? { env: variables } : {};
}

export function chooseRuntime(
  request: Pick<ExecBody, "lang" | "language" | "version">,
  runtimes: ExecRules["runtimes"],
): { language: string; version: string } {
  const name = request.lang ?? request.language;
  if (!name) throw invalidRequest([{ path: "lang", problem: "is required" }]);
  const language = findLanguage(name);
  const installed = runtimes?.filter((runtime) => runtime.language === language?.runner);
  if (language === undefined || installed?.length === 0) {
    const meant = language === undefined ? nearestLanguage(name, runtimes) : undefined;
    throw new ServiceError(
      "unsupported_language",
      [
        "The language is not supported.",
        meant && `Did you mean ${meant}?`,
        installedText(runtimes),
        hintText(name, runtimes),
      ]
        .filter(Boolean)
        .join(" "),
    );
  }
  const version = request.version?.trim() || "*";
  const fits = installed?.some((runtime) => semver.satisfies(runtime.version, version)) ?? true;
  if (!fits) {
    throw new ServiceError("unsupported_version", `No installed version fits. ${installedText(installed)}`);
  }
  return { language: language.runner, version };
}

function installedText(runtimes: readonly RuntimeInfo[] | undefined): string {
  if (runtimes === undefined || runtimes.length === 0) return "";
  return `Installed: ${runtimes.map(({ language, version }) => `${language} ${version}`).join(", ")}.`;
}

function hintText(name: string, runtimes: readonly RuntimeInfo[] | undefined): string {
  const installed = (runtimes ?? []).map(({ language }) => language);
  const hint = installHint(name, installed);
  return hint === undefined ? "" : `The operator's command ${hint}.`;
}
