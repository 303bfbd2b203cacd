/** What went wrong, as the service told it. A class for each code is in errors.generated.ts. */

/** Of an error that the service did not tell: there was no answer, or none of its own. */
export const CONNECTION_FAILED = "connection_failed";

export interface ErrorFields {
  /** A stable code of docs/errors.md, or `connection_failed`. */
  code: string;
  /** HTTP status; 0 without an answer. */
  status: number;
  /** For the logs of the service. */
  requestId?: string | undefined;
  /** The wrong places of the request. */
  details?: readonly { path: string; problem: string }[] | undefined;
  /** Seconds after which to send the request again, where the service said so. */
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

/** An answer that had begun broke off. */
export class ConnectionLostError extends SvcError {
  constructor(cause: unknown) {
    super(
      "The connection was lost before the answer was complete.",
      { code: CONNECTION_FAILED, status: 0 },
      { cause },
    );
  }
}

/** No answer came, or none of the service. Whether the request had an effect is not known. */
export class ConnectionFailedError extends SvcError {
  constructor(message: string, fields: Partial<ErrorFields> = {}, options?: ErrorOptions) {
    super(message, { code: CONNECTION_FAILED, status: 0, ...fields }, options);
  }
}
