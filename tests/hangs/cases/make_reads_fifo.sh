# A rule of a makefile reads from a FIFO that another rule was to write to, and that one was skipped.
sleep 0.1  # mprun inspect cannot tell whose folder it is if it is made in the first 10 ms
cd "$(mktemp --directory)" || exit
printf 'all: reader writer\n\nreader: pipe\n\t@read line < pipe\n\nwriter:\n\npipe:\n\t@mkfifo pipe\n' > Makefile
make --silent --jobs 2  # hangs here
echo done
