export type SqlValue = string | number | boolean | Uint8Array | null | readonly SqlValue[];
export type SqlRow = Readonly<Record<string, unknown>>;

export interface SqlResult {
  readonly rows: readonly SqlRow[];
  /** Rows that were written or deleted. */
  readonly numChanges: number;
}

/** One connection. 64-bit integers come as numbers, bytes as `Uint8Array`, JSON as what it says; errors as `toPostgresError` makes them. */
export interface SqlClient {
  query(sql: string, values?: readonly SqlValue[]): Promise<SqlResult>;
}

/** Connections to one database; one that broke is replaced at the next call. */
export interface SqlPool extends SqlClient {
  /** On one connection, committed when `run` resolves, undone when it throws. */
  transaction<T>(run: (client: SqlClient) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

/** Values of one statement and their places in it. */
export interface Binder {
  readonly values: SqlValue[];
  /** `$1`, `$2` and so on. */
  bind(value: SqlValue): string;
}

export function createBinder(): Binder {
  const values: SqlValue[] = [];
  return { values, bind: (value) => `$${values.push(value)}` };
}
