-- platform.held_enter has one parameter more.
drop function if exists platform.held_enter(text, text, text, bigint);
