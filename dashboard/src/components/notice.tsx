import type { ComponentChildren } from 'preact';
import { ApiError, messageOf } from '../api/errors.ts';
import { visibleText } from '../format/visible-text.ts';
import { Button } from './button.tsx';
import { Icon } from './icon.tsx';

/** Something to know; failures are `ErrorNotice`. */
export function Notice({ tone = 'info', children }: { tone?: 'info' | 'warn'; children: ComponentChildren }) {
  return (
    <div class="notice" data-tone={tone} role="status">
      <Icon name={tone === 'warn' ? 'warning' : 'info'} />
      <div>{children}</div>
    </div>
  );
}

/** What went wrong, with the name of the request where there was one. */
export function ErrorNotice({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  const requestId = error instanceof ApiError ? error.requestId : null;
  return (
    <div class="notice" role="alert">
      <Icon name="warning" />
      <div>
        <p>{visibleText(messageOf(error))}</p>
        {requestId !== null && <p class="small mono">request {requestId}</p>}
      </div>
      {onRetry !== undefined && (
        <Button isSmall icon="again" onClick={onRetry}>
          Try again
        </Button>
      )}
    </div>
  );
}
