# A make within a make shares the tokens of its jobs; one rule takes its time while the others wait for a token.
seconds=$1
cd "$(mktemp --directory)" || exit
printf 'all:\n\t+@$(MAKE) --silent inner\n\ninner: one two\n\none two:\n\t@sleep %s\n' "$seconds" > Makefile
make --silent --jobs 2
echo done
