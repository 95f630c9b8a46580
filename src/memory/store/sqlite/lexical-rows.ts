import { searchableText } from '../../search/record-text.ts';
import type { LexicalRows } from '../lexical-sets.ts';
import { numberOf } from '../row-values.ts';
import type { GroupCommit } from './group-commit.ts';
import { createRowOpener, kindNumber } from './record-row.ts';
import { SELECT_BY_ROWS } from './records.ts';
import type { SqlDatabase } from './sql-database.ts';

interface LexicalRowsParts {
  readonly database: SqlDatabase;
  readonly lastSeq: () => number;
  readonly commit: Pick<GroupCommit, 'flush'>;
}

export function createLexicalRows({ database, lastSeq, commit }: LexicalRowsParts): LexicalRows {
  return {
    lastSeq,
    flush: commit.flush,
    list: ({ tenant, kind }) =>
      database
        .prepare('SELECT row, seq FROM record WHERE tenant = ? AND kind = ?')
        .all(tenant.no, kindNumber(kind))
        .map((row) => ({ row: numberOf(row['row']), seq: numberOf(row['seq']) })),
    *read({ tenant }, rows) {
      const open = createRowOpener(tenant.id, { tenant: '', sealer: tenant.sealer, withVector: false });
      for (const values of database.prepare(SELECT_BY_ROWS).all(JSON.stringify(rows), tenant.no)) {
        yield { row: numberOf(values['row']), text: searchableText(open(values).record) };
      }
    },
  };
}
