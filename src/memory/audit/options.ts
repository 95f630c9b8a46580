import { choiceOption, integerOption, numberOption, resolveOptions, stringOption } from '../../core/options.ts';

export interface AuditLogOptions {
  /** Entries in one batch. Default 100. */
  readonly batchEntries?: number;
  /** Longest time until an entry is written. Default 1000. */
  readonly batchMs?: number;
  /**
   * When an entry is on disk: `batch` within `batchMs`, so that a kill may lose the last entries (their number is found at the next
   * start); `request` before the answer is complete. Default `batch`.
   */
  readonly durability?: 'batch' | 'request';
  /** Default 10 000. */
  readonly queueEntries?: number;
  /** Size of queued texts and vectors. Default 64 MiB. */
  readonly queueBytes?: number;
  /** With a full queue: drop and count entries, or let `enqueue` return a promise. Default `drop`. */
  readonly overflow?: 'drop' | 'wait';
  /** Tenant of the log's own state. Default `ruvllm`. */
  readonly stateTenant?: string;
  /**
   * How long a run may be silent before another considers it dead. Default 0: this process owns the store, and a run that is
   * open at the start has crashed.
   */
  readonly leaseMs?: number;
  /** Similar earlier queries an entry is linked to; 0 for none. Default 3. */
  readonly numSimilar?: number;
  /** Least cosine of such links. Default 0.85. */
  readonly minSimilarity?: number;
}
export type ResolvedAuditLogOptions = Required<AuditLogOptions>;

export function resolveAuditLogOptions(options?: AuditLogOptions): Readonly<ResolvedAuditLogOptions> {
  return resolveOptions<ResolvedAuditLogOptions>('audit log', options, {
    // A call of the store takes 1000 records: entries, head and run.
    batchEntries: integerOption(100, 1, 900),
    batchMs: integerOption(1000, 1, 3_600_000),
    durability: choiceOption('batch', ['batch', 'request']),
    queueEntries: integerOption(10_000, 1, 1_000_000),
    queueBytes: integerOption(64 * 2 ** 20, 1024, 2 ** 34),
    overflow: choiceOption('drop', ['drop', 'wait']),
    stateTenant: stringOption('ruvllm'),
    leaseMs: integerOption(0, 0, 86_400_000),
    numSimilar: integerOption(3, 0, 50),
    minSimilarity: numberOption(0.85, -1, 1),
  });
}
