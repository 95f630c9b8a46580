import { RuvLLMError } from '../../../core/errors.ts';
import { numberOf, textOf } from '../row-values.ts';
import type { Tenant } from '../sealer.ts';
import { openRow, RECORD_COLUMNS } from './record-row.ts';
import type { SqlDatabase } from './sql-database.ts';
import type { Tenants } from './tenants.ts';

interface ScrubContext {
  readonly database: SqlDatabase;
  readonly tenants: Tenants;
  readonly isEnded: () => boolean;
  /** Lets other work of the thread go first. */
  readonly defer: (run: () => void) => void;
  readonly onDamaged: (problem: string) => void;
}

/** Rows opened at once: about a millisecond. */
const PAGE_ROWS = 100;
/** Pages of the database up to which its structure is checked, too: the check blocks the thread. */
const MAX_CHECKED_PAGES = 16_384;

/** Opens every key and row once, so that damage is known before someone needs the data. */
export async function scrubRows({ database, tenants, isEnded, defer, onDamaged }: ScrubContext): Promise<void> {
  const attempt = <T>(run: () => T): T | null => {
    try {
      return run();
    } catch (error) {
      onDamaged(error instanceof Error ? error.message : String(error));
      return null;
    }
  };
  const pause = (): Promise<void> => new Promise((resolve) => defer(resolve));
  attempt(() => checkStructure(database));
  const numbers = attempt(() => database.prepare('SELECT no FROM tenant WHERE erasing = 0').all()) ?? [];
  const statement = database.prepare(
    `SELECT ${RECORD_COLUMNS} FROM record WHERE tenant = ? AND row > ? ORDER BY row LIMIT ?`,
  );
  for (const { no } of numbers) {
    await pause();
    if (isEnded()) return;
    const isErased =
      database.prepare('SELECT 1 FROM tenant WHERE no = ? AND erasing = 0').all(numberOf(no)).length === 0;
    const tenant = isErased ? null : attempt(() => tenants.byNumber(numberOf(no)));
    if (tenant === null) continue;
    for (let last = 0; !isEnded(); await pause()) {
      const rows = attempt(() => statement.all(tenant.no, last, PAGE_ROWS)) ?? [];
      if (rows.length === 0) break;
      for (const row of rows) attempt(() => checkRow(row, tenant));
      last = Math.max(last + 1, numberOf(rows.at(-1)!['row']));
    }
  }
}

function checkRow(row: Parameters<typeof openRow>[0], tenant: Tenant): void {
  openRow(row, tenant.id, '', tenant.sealer);
}

function checkStructure(database: SqlDatabase): void {
  const numPages = numberOf(Object.values(database.prepare('PRAGMA page_count').all()[0] ?? {})[0]);
  if (numPages > MAX_CHECKED_PAGES) return;
  const text = textOf(Object.values(database.prepare('PRAGMA quick_check(1)').all()[0] ?? {})[0]);
  if (text !== 'ok') throw new RuvLLMError('io', `the memory is damaged: ${text}`, { data: { isDamaged: true } });
}
