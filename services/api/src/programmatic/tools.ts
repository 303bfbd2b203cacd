/** The tools of a start: their names, texts and schemas, and that no two of them are one name in the program. Pure. */
import {
  findToolCollision,
  type Problem,
  type Tool,
  type ToolDeclaration,
  toolDeclarationSchema,
} from "@svc/contracts";
import { fieldPath, invalidRequest } from "@svc/service-kit";

export function parseTools(declared: readonly unknown[], language: string, maxTools: number): Tool[] {
  if (declared.length < 1 || declared.length > maxTools) {
    throw invalidRequest([{ path: "tools", problem: `must have 1 to ${maxTools} items` }]);
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
  for (const { path, message } of result.error.issues) {
    problems.push({ path: fieldPath(["tools", at, ...path]), problem: message });
  }
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
