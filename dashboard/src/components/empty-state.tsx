import type { ComponentChildren } from 'preact';
import { Icon, type IconName } from './icon.tsx';

/** Nothing is here yet: what would be, and how it comes to be. */
export function EmptyState({ icon, title, children }: { icon: IconName; title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <Icon name={icon} />
      <h2>{title}</h2>
      {children}
    </div>
  );
}
