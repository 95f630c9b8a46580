/** Compiled statements by their text; the least used goes when there are too many, for filters make ever new ones. */
export interface StatementCache<S> {
  obtain(sql: string): S;
  /** One that failed is not used again: SQLite keeps its error until it is thrown away. */
  drop(sql: string): void;
  clear(): void;
}

const MAX_STATEMENTS = 128;

export function createStatementCache<S>(
  prepare: (sql: string) => S,
  finalize: (statement: S) => void,
): StatementCache<S> {
  const statements = new Map<string, S>();
  const drop = (sql: string): void => {
    const statement = statements.get(sql);
    statements.delete(sql);
    if (statement === undefined) return;
    try {
      finalize(statement);
    } catch {
      // It repeats the error it had.
    }
  };
  return {
    drop,
    obtain(sql) {
      const known = statements.get(sql);
      if (known !== undefined) {
        statements.delete(sql);
        statements.set(sql, known);
        return known;
      }
      for (const oldest of statements.keys()) {
        if (statements.size < MAX_STATEMENTS) break;
        drop(oldest);
      }
      const statement = prepare(sql);
      statements.set(sql, statement);
      return statement;
    },
    clear() {
      for (const sql of statements.keys()) drop(sql);
    },
  };
}
