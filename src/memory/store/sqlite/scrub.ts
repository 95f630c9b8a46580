import { messageOf, RuvLLMError } from '../../../core/errors.ts';
import { numberOf, textOf } from '../row-values.ts';
import type { Tenant } from '../sealer.ts';
import { openRow } from './record-row.ts';
import { lastRowOf, readRowPage } from './row-pages.ts';
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
      onDamaged(messageOf(error));
      return null;
    }
  };
  const pause = (): Promise<void> => new Promise((resolve) => defer(resolve));
  attempt(() => checkStructure(database));
  /** By number; null: its key cannot be opened. */
  const opened = new Map<number, Tenant | null>();
  const open = (no: number): Tenant | null => {
    const known = opened.get(no);
    if (known !== undefined) return known;
    const tenant = attempt(() => tenants.byNumber(no));
    opened.set(no, tenant);
    return tenant;
  };
  const numbers = attempt(() => database.prepare('SELECT no FROM tenant WHERE erasing = 0').all()) ?? [];
  for (const { no } of numbers) {
    await pause();
    if (isEnded()) return;
    const isErased =
      database.prepare('SELECT 1 FROM tenant WHERE no = ? AND erasing = 0').all(numberOf(no)).length === 0;
    if (!isErased) open(numberOf(no));
  }
  const lastRow = attempt(() => lastRowOf(database)) ?? 0;
  for (let last = 0; last < lastRow && !isEnded(); await pause()) {
    const rows = attempt(() => readRowPage(database, last, PAGE_ROWS));
    for (const row of rows ?? []) {
      const tenant = open(numberOf(row['tenant']));
      if (tenant !== null) attempt(() => openRow(row, tenant.id, '', tenant.sealer));
    }
    // Behind rows that cannot be read there may be others.
    if (rows === null) last += PAGE_ROWS;
    else if (rows.length === 0) return;
    else last = Math.max(last + 1, numberOf(rows.at(-1)!['row']));
  }
}

function checkStructure(database: SqlDatabase): void {
  const numPages = numberOf(Object.values(database.prepare('PRAGMA page_count').all()[0] ?? {})[0]);
  if (numPages > MAX_CHECKED_PAGES) return;
  const text = textOf(Object.values(database.prepare('PRAGMA quick_check(1)').all()[0] ?? {})[0]);
  if (text !== 'ok') throw new RuvLLMError('io', `the memory is damaged: ${text}`, { data: { isDamaged: true } });
}
