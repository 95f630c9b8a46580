import type { LivePool, PoolTier } from '../../api/live.ts';
import { formatBytes, formatShare } from '../../format/numbers.ts';
import { visibleText } from '../../format/visible-text.ts';
import { messages } from '../../messages/index.ts';

const text = messages.live;
/** Display names of the server's tiers. */
const TIERS: Readonly<Record<string, string>> = text.tiers;

/** The memory use of the page pool by tier, against its budget. */
export function PoolBar({ pool }: { pool: LivePool }) {
  const { budget_bytes: budget, used_bytes: used, tiers, disk, shared = null } = pool;
  const scale = Math.max(budget, used, 1);
  const share = (bytes: number): string => `${(100 * bytes) / scale}%`;
  const label = text.inUse(formatBytes(used), formatBytes(budget));
  return (
    <div class="pool">
      <div class="pool-bar" role="img" aria-label={label}>
        {tiers.map(({ tier, bytes }, index) => (
          <span key={tier} data-series={(index % 6) + 1} style={{ width: share(bytes) }} />
        ))}
        <i class="pool-budget" style={{ left: share(budget) }} />
      </div>
      <p class="small">
        <data data-figure="used" value={used}>
          {formatBytes(used)}
        </data>
        {text.of}
        <data data-figure="budget" value={budget}>
          {formatBytes(budget)}
        </data>
        {text.poolNote(
          formatShare(budget > 0 ? used / budget : NaN),
          formatBytes(pool.peak_bytes),
          formatBytes(pool.session_bytes),
        )}
      </p>
      <ul class="pool-tiers">
        {tiers.map((tier, index) => (
          <li key={tier.tier}>
            <i data-series={(index % 6) + 1} aria-hidden="true" />
            {nameOf(tier)}{' '}
            <data data-tier={tier.tier} value={tier.bytes}>
              {formatBytes(tier.bytes)}
            </data>
            {tier.num_pages !== null && <span class="soft"> {text.pages(tier.num_pages)}</span>}
          </li>
        ))}
        {disk !== null && (
          <li>
            <i aria-hidden="true" />
            {text.spilled}{' '}
            <data data-tier="disk" value={disk.bytes}>
              {formatBytes(disk.bytes)}
            </data>
            <span class="soft"> {text.spillLimit(formatBytes(disk.limit_bytes))}</span>
          </li>
        )}
        {shared !== null && (
          <li>
            <i aria-hidden="true" />
            {text.shared}{' '}
            <data data-tier="shared" value={shared.hits}>
              {text.sharedPages(shared.hits, shared.written)}
            </data>
            {shared.failures > 0 && <span class="soft"> {text.sharedFailures(shared.failures, shared.suspended)}</span>}
          </li>
        )}
      </ul>
    </div>
  );
}

function nameOf({ tier, precision }: PoolTier): string {
  const name = TIERS[tier] ?? visibleText(tier);
  return precision === undefined ? name : `${name} (${visibleText(precision)})`;
}
