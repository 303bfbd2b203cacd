/**
 * The queue between the API and the workers. The API runs jobs with `JobProducer`; a worker handles the jobs of one kind with
 * `JobConsumer`. New runs and rounds of paused programs are jobs of the same queue.
 */
export { type ConsumerOptions, type HandleJob, JobConsumer, type StartedJob } from "./consumer.ts";
export { EventFeed, EventLog } from "./events.ts";
export { hasEnded, KEPT_STATUSES, type KeptJob, KeptJobs, type ListPage } from "./kept-jobs.ts";
export { JobProducer, ProducerStopped } from "./producer.ts";
export { goesBack, JOB_CANCELLATIONS, jobIdOf, type Place, QUEUE_NAMES } from "./protocol.ts";
export { type JobQueues, type JobState, openQueues } from "./queue.ts";
