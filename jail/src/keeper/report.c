#include "keeper/report.h"

#define LIVE_CHUNK 32768

/* Queues whole frames that fit into the buffer of the connection, so that it does not wait. */
void report_output(struct conn *conn, struct capture streams[2])
{
	for (int i = 0; i < 2 && conn->out_used == 0; i++)
		while (streams[i].sent < streams[i].held && conn->out_used == 0) {
			size_t size = streams[i].held - streams[i].sent;

			if (size > LIVE_CHUNK)
				size = LIVE_CHUNK;
			conn_send(conn, (uint8_t)('1' + i), streams[i].data + streams[i].sent, size, NULL, 0);
			streams[i].sent += size;
			conn_offer(conn);
		}
}

static void send_output(struct conn *conn, struct capture streams[2])
{
	for (int i = 0; i < 2; i++)
		while (streams[i].sent < streams[i].held) {
			size_t size = streams[i].held - streams[i].sent;

			if (size > CHUNK_MAX)
				size = CHUNK_MAX;
			conn_send(conn, (uint8_t)('1' + i), streams[i].data + streams[i].sent, size, NULL, 0);
			streams[i].sent += size;
		}
}

void report_pause(struct conn *conn, const struct pause *pause, struct capture streams[2])
{
	uint8_t head[40], *at = head;

	send_output(conn, streams);
	at = put_u64(at, pause->wall_us);
	at = put_u64(at, pause->cpu_us);
	at = put_u64(at, pause->memory);
	at = put_u64(at, streams[0].total);
	at = put_u64(at, streams[1].total);
	conn_send(conn, 'p', head, (size_t)(at - head), NULL, 0);
}

void report_end(struct conn *conn, const struct result *result, struct capture streams[2])
{
	uint8_t head[64 + 9 * REACHED_KINDS], *at = head;
	const uint64_t *reached = result->reached.limit;

	at = put_u8(at, (uint8_t)result->cause);
	at = put_u32(at, (uint32_t)result->exit_code);
	at = put_u32(at, (uint32_t)result->signal);
	at = put_u32(at, (uint32_t)result->exec_error);
	at = put_u64(at, result->wall_us);
	at = put_u64(at, result->cpu_us);
	at = put_u64(at, result->memory_peak);
	at = put_u64(at, streams[0].total);
	at = put_u64(at, streams[1].total);
	at = put_u32(at, (uint32_t)result->oom_kills);
	for (unsigned kind = 0; kind < REACHED_KINDS; kind++)
		if (reached[kind] > 0)
			at = put_u64(put_u8(at, (uint8_t)kind), reached[kind]);
	conn_send(conn, 'x', head, (size_t)(at - head), NULL, 0);
	send_output(conn, streams);
}
