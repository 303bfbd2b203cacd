/** The errors that the client throws. errors.generated.ts has a class for each code of the service. */

/** Code of an error that the service did not report: there was no response, or it came from something else. */
export const CONNECTION_FAILED = "connection_failed";

export interface ErrorFields {
  /** A stable code of docs/errors.md, or `connection_failed`. */
  code: string;
  /** HTTP status; 0 without an answer. */
  status: number;
  /** Identifies the request in the logs of the service. */
  requestId?: string | undefined;
  /** The invalid fields of the request. */
  details?: readonly { path: string; problem: string }[] | undefined;
  /** Seconds to wait before sending the request again, if the service said so. */
  retryAfter?: number | undefined;
}

export class SvcError extends Error {
  override readonly name: string = "SvcError";
  readonly code: string;
  readonly status: number;
  readonly requestId: string | undefined;
  readonly details: NonNullable<ErrorFields["details"]>;
  readonly retryAfter: number | undefined;

  constructor(message: string, fields: ErrorFields, options?: ErrorOptions) {
    super(message, options);
    this.code = fields.code;
    this.status = fields.status;
    this.requestId = fields.requestId;
    this.details = fields.details ?? [];
    this.retryAfter = fields.retryAfter;
  }
}

/** The connection broke after the response had begun. */
export class ConnectionLostError extends SvcError {
  constructor(cause: unknown) {
    super(
      "The connection was lost before the answer was complete.",
      { code: CONNECTION_FAILED, status: 0 },
      { cause },
    );
  }
}

/** There was no response, or it did not come from the service. Whether the request had an effect is not known. */
export class ConnectionFailedError extends SvcError {
  constructor(message: string, fields: Partial<ErrorFields> = {}, options?: ErrorOptions) {
    super(message, { code: CONNECTION_FAILED, status: 0, ...fields }, options);
  }
}
