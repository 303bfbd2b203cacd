/** The Python client's class for each error code, from the tables that the service runs on. */
import { ADVICE, ERRORS, type ErrorCode } from "@svc/contracts";

const HEAD = `"""
One class for each error code of the service, by what \`error\` is in an error body.

Made by \`npm run docs\` from \`packages/contracts/src/errors.ts\` and \`error-advice.ts\`; not edited by hand.
"""

from typing import Dict, Type

from ._base import ConnectionFailed, InvalidAnswer, Problem, RequestTimeout, SvcError
`;

const CODES = Object.keys(ERRORS) as ErrorCode[];

/** `queue_saturated` becomes `QueueSaturated`. */
const className = (code: string) =>
  code.replace(/(?:^|_)([a-z])/g, (_, first: string) => first.toUpperCase());

function classOf(code: ErrorCode): string {
  const { status, message } = ERRORS[code];
  const lines = [
    `class ${className(code)}(SvcError):`,
    `    """${message}"""`,
    "",
    `    code = "${code}"`,
    `    repeat = "${ADVICE[code].repeat}"`,
    `    usual_status = ${status}`,
  ];
  return lines.join("\n");
}

/** Text of clients/python/svc_client/errors.py. */
export function pythonErrors(): string {
  const table = CODES.map((code) => `    "${code}": ${className(code)},`).join("\n");
  const names = ["ConnectionFailed", "InvalidAnswer", "Problem", "RequestTimeout", "SvcError"];
  const all = [...names, ...CODES.map(className)].map((name) => `    "${name}",`).join("\n");
  return [
    HEAD,
    ...CODES.map((code) => `${classOf(code)}\n`),
    `BY_CODE: Dict[str, Type[SvcError]] = {\n${table}\n}\n\n__all__ = [\n    "BY_CODE",\n${all}\n]\n`,
  ].join("\n\n");
}
