/*
 * Fault injection: jaild-faults is jaild with a wrapper around every function of the C
 * library that can fail. A plan, a file that jaild-faults maps (SVC_FAULTS names it), says
 * which call of which kind of process fails; a test writes the plan and reads what became
 * of it while jaild runs. Nothing of this is in jaild.
 *
 * A ticket is one try: the master's own start takes the first one when the plan is about
 * master or template, otherwise every keeper takes the next one at its birth, and its jail
 * with it.
 */
#ifndef JAIL_FAULTS_H
#define JAIL_FAULTS_H

#include <stdint.h>

#define TICKETS_MAX 2048
#define CALL_NAME 24

enum role { ROLE_NONE, ROLE_MASTER, ROLE_TEMPLATE, ROLE_KEEPER, ROLE_INIT, ROLE_PROGRAM };

/* ROLE_TEMPLATE: every child of the master that is no keeper, one after the other. */
struct ticket {
	uint32_t calls;	   /* made by the process of the plan's role */
	uint32_t fired;	   /* one of them failed */
	uint32_t executed; /* the program's own code was about to begin */
	uint32_t met;	   /* the jail's keeper took a connection */
	char name[CALL_NAME];
};

struct fault_plan {
	uint32_t role, error;
	uint32_t first;	  /* the call that fails for the first ticket */
	uint32_t step;	  /* added for each later ticket; 0: always the same call */
	uint32_t tickets; /* so many have a fault, all later ones none */
	uint32_t next;	  /* number of the next ticket */
	char only[CALL_NAME]; /* counts only calls of this name, with '!' before it all others; empty: all */
	struct ticket ticket[TICKETS_MAX];
};

#endif
