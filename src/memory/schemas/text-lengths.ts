// Apart from the schemas: whoever only clips a text needs not load what checks them.

/** Longest query and answer that the audit log keeps; `numCut` says what is missing. */
export const MAX_AUDIT_TEXT = 65536;

/** Of a query or an answer of a turn: both, in three bytes for each unit, fit the 4 MiB of a body. */
export const MAX_TURN_TEXT = 1 << 18;

/** Of each text of a trajectory: what can be learned from has an end. */
export const MAX_TRAJECTORY_TEXT = 1 << 16;
