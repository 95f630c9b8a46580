export type SqlValue = string | number | boolean | Uint8Array | null | readonly SqlValue[];
export type SqlRow = Readonly<Record<string, unknown>>;

export interface SqlResult {
  readonly rows: readonly SqlRow[];
  /** Rows written or deleted. */
  readonly numChanges: number;
}

/** One connection. Returns 64-bit integers as numbers, bytes as `Uint8Array`, JSON parsed; errors come from `toPostgresError`. */
export interface SqlClient {
  query(sql: string, values?: readonly SqlValue[]): Promise<SqlResult>;
}

/** Connections to one database; broken ones are replaced. */
export interface SqlPool extends SqlClient {
  /** Commits when `run` resolves, rolls back when it throws. */
  transaction<T>(run: (client: SqlClient) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

/** The values of a statement. */
export interface Binder {
  readonly values: SqlValue[];
  /** `$1`, `$2` and so on. */
  bind(value: SqlValue): string;
}

export function createBinder(): Binder {
  const values: SqlValue[] = [];
  return { values, bind: (value) => `$${values.push(value)}` };
}
