import type { ComponentChildren } from 'preact';
import { Icon, type IconName } from './icon.tsx';

/** Placeholder for an empty list: says what is missing and how to create it. */
export function EmptyState({ icon, title, children }: { icon: IconName; title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <Icon name={icon} />
      <h2>{title}</h2>
      {children}
    </div>
  );
}
