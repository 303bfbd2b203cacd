/** From the body of POST /v1/exec/programmatic to a start or a resume. Pure. */
import {
  findLanguage,
  type ProgrammaticStartBody,
  programmaticStartBodySchema,
  ServiceError,
  type Tool,
  type ToolResult,
  toolResultSchema,
} from "@svc/contracts";
import { invalidRequest, parseOrRefuse } from "@svc/service-kit";
import { z } from "zod";
import { parseRefs } from "../exec/refs.ts";
import { chooseRuntime, type ExecRules, type ParsedExec } from "../exec/request.ts";
import { parseTools } from "./tools.ts";

export interface StartRules extends ExecRules {
  maxTools: number;
}

/** Its `run_timeout` is the limit of one round. */
export interface Start extends ParsedExec {
  tools: Tool[];
}

export interface Resume {
  token: string;
  results: ToolResult[];
}

/** The languages that can call tools, as the runner names them. */
const WITH_TOOLS: readonly string[] = ["python", "bash"];
const MAX_RESULTS = 200;

/** The token of a resume; undefined for a start. What is no object is a start, which is then refused as one. */
export function tokenOf(body: unknown): unknown {
  const token = (body as { continuation_token?: unknown } | null)?.continuation_token;
  return token === undefined || token === null || token === "" ? undefined : token;
}

export function parseStart(body: unknown, rules: StartRules): Start {
  const request = parseOrRefuse(programmaticStartBodySchema, body);
  const named = request.language || request.lang || "python";
  if (!WITH_TOOLS.includes(findLanguage(named)?.runner ?? "")) {
    throw new ServiceError("unsupported_language", "Programs with tools may be written in Python or Bash.");
  }
  const { language, version } = chooseRuntime({ ...request, lang: named, language: null }, rules.runtimes);
  return {
    language,
    version,
    code: request.code,
    args: request.args ?? [],
    ...(request.stdin == null ? {} : { stdin: request.stdin }),
    run_timeout: roundLimit(request, rules),
    files: parseRefs(request.files, rules),
    tools: parseTools(request.tools, language, rules.maxTools),
  };
}

function roundLimit(request: ProgrammaticStartBody, { defaultRunMs, maxRunMs }: ExecRules): number {
  return Math.min(Math.ceil(request.timeout ?? request.run_timeout ?? defaultRunMs), maxRunMs);
}

const resultsSchema = z.array(toolResultSchema).min(1).max(MAX_RESULTS);

/** The shape of a resume; whether its calls are pending is the execution's to say. */
export function parseResume(body: unknown): Resume {
  const { continuation_token, tool_results } = body as Record<string, unknown>;
  if (typeof continuation_token !== "string") throw new ServiceError("invalid_continuation_token");
  const parsed = resultsSchema.safeParse(tool_results);
  if (!parsed.success) {
    throw invalidToolResults(
      parsed.error.issues.map(({ path, message }) => ({
        path: ["tool_results", ...path].reduce<string>(
          (text, part) => (typeof part === "number" ? `${text}[${part}]` : text && `${text}.${String(part)}`),
          "tool_results",
        ),
        problem: message,
      })),
    );
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
