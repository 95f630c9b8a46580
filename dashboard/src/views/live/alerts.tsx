import type { LiveAlert } from '../../api/live.ts';
import { Icon } from '../../components/icon.tsx';
import { formatBytes, formatCount, formatShare } from '../../format/numbers.ts';
import { formatDuration } from '../../format/time.ts';
import { visibleText } from '../../format/visible-text.ts';
import { messages } from '../../messages/index.ts';

const text = messages.live.alerts;

/** Writes the value and the limit of an alert. */
const DETAILS: Readonly<Record<string, (alert: Required<LiveAlert>) => string>> = {
  queue_length: ({ value, limit }) => text.queueLength.detail(formatCount(value), formatCount(limit)),
  first_token_wait: ({ value, limit }) => text.firstTokenWait.detail(formatDuration(value), formatDuration(limit)),
  memory_budget: ({ model, value, limit }) =>
    text.memoryBudget.detail(visibleText(model), formatShare(value), formatShare(limit)),
  error_share: ({ value, limit, count, window_ms }) =>
    text.errorShare.detail(formatShare(value), formatCount(count), formatDuration(window_ms), formatShare(limit)),
  memory_degraded: () => text.memoryDegraded.detail,
  keys_damaged: ({ value }) => text.keysDamaged.detail(formatCount(value)),
  backup_failed: () => text.backupFailed.detail,
  master_key_damaged: () => text.masterKeyDamaged.detail,
  spill_unavailable: () => text.spillUnavailable.detail,
  audit_dropped: ({ value, window_ms }) => text.auditDropped.detail(formatCount(value), formatDuration(window_ms)),
  spill_full: ({ model, value, limit }) =>
    text.spillFull.detail(visibleText(model), formatShare(value), formatShare(limit)),
  disk_low: ({ value, limit }) => text.diskLow.detail(formatBytes(value), formatBytes(limit)),
};

const TITLES: Readonly<Record<string, string>> = {
  queue_length: text.queueLength.title,
  first_token_wait: text.firstTokenWait.title,
  memory_budget: text.memoryBudget.title,
  error_share: text.errorShare.title,
  memory_degraded: text.memoryDegraded.title,
  keys_damaged: text.keysDamaged.title,
  backup_failed: text.backupFailed.title,
  master_key_damaged: text.masterKeyDamaged.title,
  spill_unavailable: text.spillUnavailable.title,
  audit_dropped: text.auditDropped.title,
  spill_full: text.spillFull.title,
  disk_low: text.diskLow.title,
};

/** Conditions that an operator should know of. Only their titles are announced: their values change every second. */
export function Alerts({ alerts }: { alerts: readonly LiveAlert[] }) {
  const titleOf = ({ kind }: LiveAlert): string => TITLES[kind] ?? visibleText(kind);
  return (
    <>
      <p class="unseen" role="status">
        {alerts.map(titleOf).join('. ')}
      </p>
      {alerts.map((alert) => (
        <div key={`${alert.kind} ${alert.model ?? ''}`} class="notice" data-tone="warn" data-alert={alert.kind}>
          <Icon name="warning" />
          <div>
            <strong>{titleOf(alert)}.</strong> {DETAILS[alert.kind]?.(alert as Required<LiveAlert>)}
          </div>
        </div>
      ))}
    </>
  );
}
