import type { ComponentChildren } from 'preact';
import { Icon, type IconName } from './icon.tsx';

export interface ButtonProps {
  readonly children?: ComponentChildren;
  readonly kind?: 'normal' | 'primary' | 'danger' | 'plain';
  readonly icon?: IconName;
  /** Accessible name; required for buttons that show only an icon. */
  readonly label?: string;
  readonly isSmall?: boolean;
  readonly isDisabled?: boolean;
  /** For toggle buttons: whether it is on. */
  readonly isPressed?: boolean;
  readonly type?: 'button' | 'submit';
  readonly onClick?: (event: MouseEvent) => void;
}

/** A button with text, an icon, or both. */
export function Button(props: ButtonProps) {
  const {
    children,
    kind = 'normal',
    icon,
    label,
    isSmall = false,
    isDisabled = false,
    isPressed,
    type = 'button',
  } = props;
  const isIconOnly = children === undefined;
  const className = ['button', kind, isSmall && 'small', isIconOnly && 'icon-only'].filter(Boolean).join(' ');
  return (
    <button
      class={className}
      type={type}
      disabled={isDisabled}
      aria-label={label}
      aria-pressed={isPressed}
      title={isIconOnly ? label : undefined}
      onClick={props.onClick}
    >
      {icon !== undefined && <Icon name={icon} />}
      {children}
    </button>
  );
}
