/**
 * Parses one request of a program on its tool socket: which tool, with which arguments, in the text that goes on
 * to the gateway. The program controls all of it: anything that is not exactly the protocol is refused. An
 * accepted request is neither deeper nor larger than what a caller may send back. Pure.
 */
import { exceededJsonBound, JSON_BOUNDS, TOOL_CALL_BOUNDS } from "@svc/contracts";

/** Content type of arguments alone, as raw JSON text. A header names the tool by its index in the list of tools. */
export const RAW_INPUT_TYPE = "application/vnd.svc.tool-input";
export const TOOL_INDEX_HEADER = "x-tool-index";

export interface ToolCall {
  name: string;
  input: object;
  /** Body of the gateway's POST /tool-call. It holds the arguments exactly as the program wrote them. */
  text: string;
}

/** `status`: the HTTP status. 413 is about the arguments' size, 400 about their form. */
export class BadToolRequest extends Error {
  readonly status: 400 | 413;

  constructor(message: string, status: 400 | 413 = 400) {
    super(message);
    this.status = status;
  }
}

const TOO_LARGE = {
  depth: `the arguments are nested deeper than ${JSON_BOUNDS.depth} levels: flatten them, or pass them as JSON text`,
  values: `the arguments hold more than ${JSON_BOUNDS.values} values: make several calls, or pass them as JSON text`,
} as const;

export function parseToolRequest(
  headers: Readonly<Record<string, string | string[] | undefined>>,
  body: Buffer,
  tools: readonly string[],
): ToolCall {
  const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  let json: string;
  try {
    json = text.decode(body);
  } catch {
    throw new BadToolRequest("the arguments are not valid UTF-8");
  }
  const isRaw = headers["content-type"] === RAW_INPUT_TYPE;
  const exceeded = exceededJsonBound(body, isRaw ? JSON_BOUNDS : TOOL_CALL_BOUNDS);
  if (exceeded !== undefined) throw new BadToolRequest(TOO_LARGE[exceeded], 413);
  return isRaw ? rawInput(json, tools[indexOf(headers[TOOL_INDEX_HEADER])]) : envelope(json);
}

function indexOf(header: string | string[] | undefined): number {
  return typeof header === "string" && /^\d{1,6}$/.test(header) ? Number(header) : -1;
}

function rawInput(json: string, name: string | undefined): ToolCall {
  if (name === undefined) throw new BadToolRequest("no such tool");
  const input = objectOf(parse(json));
  return { name, input, text: `{"tool_name":${JSON.stringify(name)},"input":${json}}` };
}

function envelope(json: string): ToolCall {
  const { tool_name: name, input, ...rest } = objectOf(parse(json)) as Record<string, unknown>;
  if (typeof name !== "string" || Object.keys(rest).length > 0) {
    throw new BadToolRequest("a request holds tool_name and input, nothing else");
  }
  return { name, input: objectOf(input), text: json };
}

function parse(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    throw new BadToolRequest("the arguments are not valid JSON");
  }
}

function objectOf(value: unknown): object {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new BadToolRequest("the arguments must be a JSON object");
  }
  return value;
}
