"""Operations, written once for both halves: generators that yield statements, receive rows."""
