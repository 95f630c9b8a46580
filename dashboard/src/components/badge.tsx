import type { ComponentChildren } from 'preact';

export type Tone = 'good' | 'warn' | 'bad' | 'accent' | 'none';

/** A short, coloured state label. */
export function Badge({ tone = 'none', children }: { tone?: Tone; children: ComponentChildren }) {
  return (
    <span class="badge" data-tone={tone}>
      {children}
    </span>
  );
}
