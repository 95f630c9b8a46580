// Apart from the schemas, so that code that only clips texts does not load them.

/** Of a query or answer in the audit log; `numCut` counts what was cut. */
export const MAX_AUDIT_TEXT = 65536;

/** Of a query or answer of a turn: both, at 3 bytes per unit, fit the 4 MiB of a body. */
export const MAX_TURN_TEXT = 1 << 18;

/** Of each text of a trajectory. */
export const MAX_TRAJECTORY_TEXT = 1 << 16;
