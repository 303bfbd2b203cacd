/** Parses the body of POST /v1/exec/programmatic: a start with its tools, or a resume. Pure. */
import {
  findLanguage,
  findToolCollision,
  type Problem,
  type ProgrammaticStartBody,
  problemsOf,
  programmaticStartBodySchema,
  ServiceError,
  type Tool,
  type ToolDeclaration,
  type ToolResult,
  toolDeclarationSchema,
  toolResultSchema,
} from "@svc/contracts";
import { invalidRequest, parseOrRefuse } from "@svc/service-kit";
import { z } from "zod";
import { chooseRuntime, type ExecRules, type ParsedExec, parseEnv, programFields } from "../exec/request.ts";

export interface StartRules extends ExecRules {
  maxTools: number;
}

/** `run_timeout` is the limit of one round. */
export interface Start extends ParsedExec {
  tools: Tool[];
}

export interface Resume {
  token: string;
  results: ToolResult[];
}

/** The languages that can call tools, by the runner's names. */
const WITH_TOOLS: readonly string[] = ["python", "bash"];
const MAX_RESULTS = 200;

/** The token of a resume; undefined for a start. A body that is not an object counts as a start and is refused as one. */
export function tokenOf(body: unknown): unknown {
  const token = (body as { continuation_token?: unknown } | null)?.continuation_token;
  return token === undefined || token === null || token === "" ? undefined : token;
}

export function parseStart(body: unknown, rules: StartRules): Start {
  const request = parseOrRefuse(programmaticStartBodySchema, body);
  if (request.workspace_instance_id != null) throw new ServiceError("stateful_workspace_unsupported");
  const named = request.language || request.lang || "python";
  if (!WITH_TOOLS.includes(findLanguage(named)?.runner ?? "")) {
    throw new ServiceError("unsupported_language", "Programs with tools may be written in Python or Bash.");
  }
  const { language, version } = chooseRuntime({ ...request, lang: named, language: null }, rules.runtimes);
  return {
    language,
    version,
    run_timeout: roundLimit(request, rules),
    ...parseToolEnv(request.env),
    ...programFields(request, rules),
    tools: parseTools(request.tools, language, rules.maxTools),
  };
}

/** BASH_ENV makes tools callable. PYTHONHASHSEED makes a replay see sets in the same order. */
const TOOL_VARIABLES: readonly string[] = ["BASH_ENV", "PYTHONHASHSEED"];

function parseToolEnv(env: unknown): Pick<ParsedExec, "env"> {
  const parsed = parseEnv(env);
  const problems = TOOL_VARIABLES.filter((name) => Object.hasOwn(Object(env), name)).map((name) => ({
    path: `env.${name}`,
    problem: "is set by the service for programs with tools",
  }));
  if (problems.length > 0) throw invalidRequest(problems);
  return parsed;
}

function roundLimit(request: ProgrammaticStartBody, { defaultRunMs, maxRunMs }: ExecRules): number {
  return Math.min(Math.ceil(request.timeout ?? request.run_timeout ?? defaultRunMs), maxRunMs);
}

/** The tools of a start, maybe none: names, descriptions and schemas. No two tools may map to the same name in the program. */
function parseTools(declared: readonly unknown[], language: string, maxTools: number): Tool[] {
  if (declared.length > maxTools) {
    throw invalidRequest([{ path: "tools", problem: `must have at most ${maxTools} items` }]);
  }
  const problems: Problem[] = [];
  const tools = declared.map((item, at) => parseTool(item, at, problems));
  if (problems.length > 0) throw invalidRequest(problems);
  const parsed = tools as Tool[];
  const conflict = findToolCollision(
    parsed.map(({ name }) => name),
    language === "bash" ? "bash" : "python",
  );
  if (conflict !== undefined) {
    const { first, second, identifier } = conflict;
    throw invalidRequest(
      [first, second].map((at) => ({
        path: `tools[${at}].name`,
        problem: `tools[${first}] and tools[${second}] are both called ${identifier} in the program`,
      })),
    );
  }
  return parsed;
}

function parseTool(item: unknown, at: number, problems: Problem[]): Tool | undefined {
  const result = toolDeclarationSchema.safeParse(item);
  if (result.success) return toolOf(result.data, at, problems);
  problems.push(...problemsOf(result.error, ["tools", at]));
  return undefined;
}

function toolOf(item: ToolDeclaration, at: number, problems: Problem[]): Tool | undefined {
  const { name, description, parameters } = {
    name: item.name ?? item.function?.name,
    description: item.description ?? item.function?.description,
    parameters: item.parameters ?? item.function?.parameters,
  };
  if (name == null) {
    problems.push({ path: `tools[${at}].name`, problem: "is required" });
    return undefined;
  }
  if (parameters != null && (typeof parameters !== "object" || Array.isArray(parameters))) {
    problems.push({ path: `tools[${at}].parameters`, problem: "must be a JSON schema object" });
    return undefined;
  }
  return {
    name,
    ...(description == null ? {} : { description }),
    ...(parameters == null ? {} : { parameters_json: JSON.stringify(parameters) }),
  };
}

const resultsSchema = z.array(toolResultSchema).min(1).max(MAX_RESULTS);

/** The shape of a resume. Whether its calls are pending is checked when the results are accepted. */
export function parseResume(body: unknown): Resume {
  const { continuation_token, tool_results } = body as Record<string, unknown>;
  if (typeof continuation_token !== "string") throw new ServiceError("invalid_continuation_token");
  const parsed = resultsSchema.safeParse(tool_results);
  if (!parsed.success) {
    throw invalidToolResults(problemsOf(parsed.error, ["tool_results"]));
  }
  return { token: continuation_token, results: parsed.data };
}

export function invalidToolResults(details: { path: string; problem: string }[]): ServiceError {
  const [first] = details;
  const message = first === undefined ? undefined : `${first.path}: ${first.problem}.`;
  return new ServiceError("invalid_tool_results", message, { details });
}

const cancelSchema = z.object({ request_id: z.string() });

export function parseCancel(body: unknown): string {
  const { request_id } = parseOrRefuse(cancelSchema, body);
  if (request_id === "") throw invalidRequest([{ path: "request_id", problem: "must not be empty" }]);
  return request_id;
}
