/** POST /v1/exec/programmatic, for starts and resumes, and its cancel route. Parsing and the work are in other modules. */
import {
  cancelRequestSchema,
  cancelResponseSchema,
  type ProgrammaticResponse,
  programmaticRequestSchema,
  programmaticResponseSchema,
  programmaticResumeSchema,
  programmaticStartSchema,
} from "@svc/contracts";
import {
  type FastifyReply,
  type FastifyRequest,
  type HttpServer,
  sendError,
  toServiceError,
} from "@svc/service-kit";
import { permanentRefusal } from "../exec/client.ts";
import { tellIgnoredFields } from "../exec/ignored-fields.ts";
import { noteUser } from "../request-log.ts";
import { answerRun } from "../streams/answer.ts";
import { runAnswer } from "../streams/documented.ts";
import { cancelByLabel } from "./cancel.ts";
import { parseCancel, tokenOf } from "./request.ts";
import { handleResume } from "./resume.ts";
import { handleStart } from "./start.ts";
import type { ProgrammaticDeps } from "./wiring.ts";

export const PROGRAMMATIC_ROUTE = "/v1/exec/programmatic";

/** A start may have an empty token. */
const START_FIELDS: ReadonlySet<string> = new Set([
  ...Object.keys(programmaticStartSchema.shape),
  "continuation_token",
]);
const RESUME_FIELDS: ReadonlySet<string> = new Set(Object.keys(programmaticResumeSchema.shape));
const CANCEL_FIELDS: ReadonlySet<string> = new Set(Object.keys(cancelRequestSchema.shape));

export function programmaticRoutes(app: HttpServer, deps: ProgrammaticDeps): void {
  const common = {
    // request.ts validates bodies: its rules go beyond the schema.
    validatorCompiler: () => (value: unknown) => ({ value }),
    errorHandler: async (error: unknown, request: FastifyRequest, reply: FastifyReply) =>
      sendError(request, reply, permanentRefusal(toServiceError(error, request))),
  };
  app.post(
    PROGRAMMATIC_ROUTE,
    {
      ...common,
      bodyLimit: deps.config.SVC_HTTP_JSON_LIMIT,
      config: { scopeOfBody: (body) => (tokenOf(body) === undefined ? "executions" : "resumes") },
      schema: {
        summary: "Run a program that calls tools, or answer its calls",
        operationId: "execProgrammatic",
        tags: ["execution"],
        body: programmaticRequestSchema,
        response: { 200: runAnswer(programmaticResponseSchema) },
      },
    },
    (request, reply) => {
      const isStart = tokenOf(request.body) === undefined;
      tellIgnoredFields(reply, request.body, isStart ? START_FIELDS : RESUME_FIELDS);
      if (isStart) noteUser(request);
      return answerRun(request, reply, deps.feed, async (stream) =>
        isStart
          ? { answer: await handleStart(request, reply, deps, stream), replayed: false }
          : handleResume(request, reply, deps, stream),
      ) as Promise<ProgrammaticResponse>;
    },
  );
  app.post(
    `${PROGRAMMATIC_ROUTE}/cancel`,
    {
      ...common,
      schema: {
        summary: "Cancel programs by the request id they were started with",
        operationId: "cancelProgrammatic",
        tags: ["execution"],
        body: cancelRequestSchema,
        response: { 200: cancelResponseSchema },
      },
    },
    async (request, reply) => {
      tellIgnoredFields(reply, request.body, CANCEL_FIELDS);
      return {
        status: "cancelled" as const,
        cancelled: await cancelByLabel(
          deps,
          deps.principalOf(request),
          parseCancel(request.body),
          request.id,
        ),
      };
    },
  );
}
